#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "core/input_file.h"

namespace mindpipe {

/// Cuts bytes into lines, without the character that ends each.
class LineReader {
 public:
  /// Lines of a stream; `path` names it in complaints. A line of more than `longest` bytes is refused.
  LineReader(std::string path, std::unique_ptr<ByteStream> bytes, std::size_t longest);
  /// Lines of a file.
  LineReader(const std::string& path, std::size_t longest);
  /// Reads the next line; false at the end.
  bool next(std::string& line);
  const std::string& path() const { return path_; }
  /// Number of the line that was read last, from 1.
  std::int64_t number() const { return number_; }
  /// Whether the line that was read last had an end; only a file's last line may have none.
  bool was_ended() const { return was_ended_; }

 private:
  std::string path_;
  std::unique_ptr<ByteStream> bytes_;
  std::size_t longest_;
  std::string buffer_;
  std::size_t begin_ = 0, end_ = 0;
  std::int64_t number_ = 0;
  bool was_ended_ = false;
};

/// Most bytes of a line that the program itself writes.
inline constexpr std::size_t longest_own_line = std::size_t{1} << 20;

}  // namespace mindpipe
