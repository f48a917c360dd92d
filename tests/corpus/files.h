#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "config/sections/data.h"
#include "core/check.h"
#include "corpus/documents.h"

namespace mindpipe {

/// A folder of its own for one test, gone afterwards.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "mindpipe-corpus-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

inline std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return bytes;
}
inline void write_file(const std::string& path, const std::string& bytes) {
  std::filesystem::remove(path);  // a new file need not wait for the disk; a shortened one may
  std::ofstream(path, std::ios::binary) << bytes;
}
inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Documents [1,2,3], [4,5 | 6,7,8], [9] as uint16: the fixture of the format.
inline const std::string golden_idx = from_hex(
    "4d4d494449445800000100000000000000080400000000000000040000000000000003000000"
    "020000000300000001000000000000000000000006000000000000000a000000000000001000"
    "0000000000000000000000000000010000000000000003000000000000000400000000000000");
inline const std::string golden_bin = from_hex("010002000300040005000600070008000900");
inline std::string write_golden(const Folder& folder, const std::string& idx = golden_idx,
                                const std::string& bin = golden_bin) {
  write_file(folder / "pair.idx", idx);
  write_file(folder / "pair.bin", bin);
  return folder / "pair";
}

/// Documents of given lengths; their tokens count on from 0 through all of them.
class CountedDocuments : public Documents {
 public:
  explicit CountedDocuments(std::vector<std::int64_t> lengths) : lengths_(std::move(lengths)) {}
  std::int64_t count() const override { return static_cast<std::int64_t>(lengths_.size()); }
  std::int64_t length(std::int64_t d) const override { return lengths_[d]; }
  void read(std::int64_t d, std::int64_t first, std::int64_t tokens, std::int32_t* out) const override {
    std::int64_t before = 0;
    for (std::int64_t i = 0; i < d; ++i) before += lengths_[i];
    ASSERT_LE(first + tokens, lengths_[d]);
    for (std::int64_t i = 0; i < tokens; ++i) out[i] = static_cast<std::int32_t>(before + first + i);
  }
  std::string name() const override { return "counted"; }

 private:
  std::vector<std::int64_t> lengths_;
};

/// Data of one source, for training and to be held out.
inline DataConfig from(const std::string& path) {
  DataConfig data;
  data.train = data.validation = {{path, 1}};
  return data;
}

/// The sentence and the code of the Error that `action` throws.
template <class Action>
void expect_error(Exit code, const std::string& part, Action action) {
  try {
    action();
    ADD_FAILURE() << "no error; expected: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(static_cast<int>(error.code), static_cast<int>(code)) << error.what();
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
        << error.what() << "\nexpected: " << part;
  }
}

}  // namespace mindpipe
