#pragma once
#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/check.h"
#include "core/handle.h"

namespace mindpipe {

struct DescriptorTraits {
  using Raw = int;
  static int none() { return -1; }
  static void release(int descriptor) noexcept;
};
using Descriptor = Handle<DescriptorTraits>;

/// What came of opening a file for reading.
struct OpenedFile {
  Descriptor file;         ///< none where the path could not be opened, or is no ordinary file
  int error = 0;           ///< errno where the system refused
  std::int64_t bytes = 0;  ///< length of an ordinary file
};
/// Opens an ordinary file for reading. A pipe, a device or a folder in its place is refused, and nobody waits
/// for it. Every file that the program reads is opened here.
OpenedFile open_ordinary(const std::string& path, int more_flags = 0);

/// Whether something is at a path. Where nobody can tell, as at a link to itself, there is: who opens it says
/// what is wrong.
bool file_is_there(const std::string& path);

/// Fails with the system's reason for `error` (an errno): missing 66, not permitted 77, else `otherwise`.
[[noreturn]] void fail_to_open(const std::string& path, int error, Exit otherwise);

/// Bytes that come one behind the other.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  /// Fills `to` from its front; fewer bytes, or 0, only at the end.
  virtual std::size_t read(std::span<char> to) = 0;
};

/// An ordinary file, read from its begin to its end.
class InputFile : public ByteStream {
 public:
  /// Fails where there is none: missing 66, not permitted 77, no ordinary file `no_file`.
  explicit InputFile(const std::string& path, Exit no_file = Exit::bad_data);
  const std::string& path() const { return path_; }
  /// Bytes that it had when it was opened.
  std::int64_t size() const { return opened_.bytes; }
  int descriptor() const { return opened_.file.get(); }
  /// The first byte that nobody has written: a hole, which reads as zeros; size() where there is none.
  std::int64_t first_hole() const;
  std::size_t read(std::span<char> to) override;

 private:
  std::string path_;
  OpenedFile opened_;
};

/// Refuses a file of which nothing was ever written from byte `hole` of `bytes` on.
void require_no_hole(const std::string& path, std::int64_t hole, std::int64_t bytes);

/// Refuses a file that is longer than `largest` bytes.
void require_length(const std::string& path, std::int64_t bytes, std::int64_t largest, Exit code);

/// The whole of a small file; one of more than `largest` bytes is refused with `code`, unread.
std::string read_text(const std::string& path, std::int64_t largest, Exit code = Exit::bad_data);
/// The whole of a small file that may be missing.
std::optional<std::string> read_text_if_there(const std::string& path, std::int64_t largest);

/// Most bytes of a file that says how a run stands: its status, its lock, its energy.
inline constexpr std::int64_t largest_status = std::int64_t{1} << 20;

}  // namespace mindpipe
