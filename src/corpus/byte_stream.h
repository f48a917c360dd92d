#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace mindpipe {

/// The bytes of a file, in order. What is packed by gzip or zstd is unpacked on the way.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  /// Fills `to` from its front; fewer bytes, or 0, only at the end.
  virtual std::size_t read(std::span<char> to) = 0;
};

/// Opens a file; its first bytes say whether and how it is packed.
std::unique_ptr<ByteStream> open_bytes(const std::string& path);

/// The lines of a file, without the character that ends them.
class LineStream {
 public:
  explicit LineStream(const std::string& path);
  /// Reads the next line; false at the end. A line of more than 64 MiB is refused.
  bool next(std::string& line);
  /// Number of the line that was read last, from 1.
  std::int64_t number() const { return number_; }
  /// Whether the line that was read last had an end; only a file's last line may have none.
  bool was_ended() const { return was_ended_; }

 private:
  std::string path_;
  std::unique_ptr<ByteStream> bytes_;
  std::string buffer_;
  std::size_t begin_ = 0, end_ = 0;
  std::int64_t number_ = 0;
  bool was_ended_ = false;
};

}  // namespace mindpipe
