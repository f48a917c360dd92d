#pragma once
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "core/check.h"

/// What a fuzzer is: a function of any bytes, which libFuzzer calls with bytes that it makes up, and
/// tests/fuzz/replay.cpp with those of files.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace mindpipe {

/// The bytes that a fuzzer was called with, as text.
inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Runs what reads hostile bytes. A refusal with a sentence is as it should be; another end is a finding: a
/// crash, an exception of a library, a check of what only a mistake of ours can break, an empty sentence.
template <class Read>
void read_or_refuse(Read read) {
  try {
    read();
  } catch (const Error& error) {
    if (error.code != Exit::internal && std::string_view(error.what()).size() > 10) return;
    std::fprintf(stderr, "a refusal that is none (exit code %d): %s\n", static_cast<int>(error.code),
                 error.what());
    std::abort();
  }
}

/// A folder of this process in memory, for what is read by path; it goes when the process ends.
class FuzzFolder {
 public:
  FuzzFolder() {
    const std::filesystem::path memory = "/dev/shm";
    std::filesystem::path base =
        std::filesystem::exists(memory) ? memory : std::filesystem::temp_directory_path();
    std::string name = (base / "mindpipe-fuzz-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~FuzzFolder() {
    std::error_code none;
    std::filesystem::remove_all(path_, none);
  }
  FuzzFolder(const FuzzFolder&) = delete;
  FuzzFolder& operator=(const FuzzFolder&) = delete;

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  /// Writes a file and gives its path.
  std::string write(const std::string& name, std::string_view bytes) const {
    std::ofstream file(path_ / name, std::ios::binary | std::ios::trunc);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.close();
    if (!file.good()) std::abort();
    return *this / name;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace mindpipe
