// Calls a fuzzer with the bytes of files and of all files in folders: the main of a fuzzer in make test.
#include <algorithm>
#include <iterator>
#include <vector>

#include "fuzz/fuzz.h"

namespace {

std::vector<std::filesystem::path> files_of(int count, char** names) {
  std::vector<std::filesystem::path> files;
  for (int i = 1; i < count; ++i) {
    if (!std::filesystem::is_directory(names[i])) files.emplace_back(names[i]);
    else
      for (const auto& entry : std::filesystem::directory_iterator(names[i])) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

int main(int argc, char** argv) {
  const auto files = files_of(argc, argv);
  for (const auto& path : files) {
    std::fprintf(stderr, "%s\n", path.c_str());  // so that the last line names the file of a crash
    std::ifstream file(path, std::ios::binary);
    const std::vector<char> bytes(std::istreambuf_iterator<char>(file), {});
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  }
  std::printf("%zu files\n", files.size());
  return files.size() < 3 ? 1 : 0;
}
