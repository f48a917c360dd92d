#pragma once
#include <cstdint>
#include <fstream>
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

/// Writes a pair `prefix.bin` + `prefix.idx`, token by token, straight to the disk; it gets its names when
/// `finish` has written all of it, so that an interrupted import leaves nothing that looks complete.
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
  std::int64_t documents() const { return static_cast<std::int64_t>(boundaries_.size()) - 1; }

 private:
  void write(std::ofstream& file, const std::string& path, const void* data, std::size_t bytes) const;

  std::string prefix_;
  TokenType type_;
  std::int64_t longest_sequence_, open_ = 0, tokens_ = 0;
  UnfinishedFile unfinished_;  ///< the .bin
  std::ofstream bin_;
  std::vector<char> buffer_;
  std::vector<std::int32_t> lengths_;
  std::vector<std::int64_t> boundaries_{0};
};

}  // namespace mindpipe
