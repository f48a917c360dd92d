#pragma once
#include <cstdint>
#include <fstream>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "core/unfinished_file.h"
#include "corpus/token_file.h"

namespace mindpipe {

/// Returns the path; fails if something is there already.
const std::string& unused(const std::string& path);
/// Creates a file to write; fails with the reason if it cannot.
std::ofstream create_file(const std::string& path);

/// Numbers of one type that are written one after the other, and read again when all are there.
class NumbersOnDisk {
 public:
  explicit NumbersOnDisk(const std::string& path);
  template <class T>
  void add(T number) {
    write(&number, sizeof number);
    ++count_;
  }
  std::int64_t count() const { return count_; }
  /// Ends the writing and calls `use` with the bytes of all numbers, some at a time.
  void read(const std::function<void(std::span<const char>)>& use);

 private:
  void write(const void* data, std::size_t bytes);

  UnfinishedFile file_;
  std::ofstream out_;
  std::int64_t count_ = 0;
};

/// Writes a pair `prefix.bin` + `prefix.idx`, token by token, straight to the disk, the lengths too; it gets
/// its names when `finish` has written all of it, so that an interrupted import leaves nothing that looks
/// complete.
class TokenWriter {
 public:
  TokenWriter(const std::string& prefix, TokenType type,
              std::int64_t longest_sequence = std::numeric_limits<std::int32_t>::max());

  /// Adds tokens to the open sequence; beyond `longest_sequence` they go on as a next one of the document.
  void add(std::span<const std::int32_t> tokens);
  void end_sequence();
  /// Ends the open sequence, if it has tokens, and the document.
  void end_document();
  void finish();

  std::int64_t tokens() const { return tokens_; }
  std::int64_t documents() const { return boundaries_.count() - 1; }

 private:
  void write(std::ofstream& file, const std::string& path, const void* data, std::size_t bytes) const;

  std::string prefix_;
  TokenType type_;
  std::int64_t longest_sequence_, open_ = 0, tokens_ = 0;
  UnfinishedFile unfinished_;  ///< the .bin
  std::ofstream bin_;
  std::vector<char> buffer_;
  NumbersOnDisk lengths_, boundaries_;
  std::int64_t last_boundary_ = 0;
};

}  // namespace mindpipe
