#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/input_file.h"
#include "core/unfinished_file.h"

namespace mindpipe {

/// An open file, closed when it goes.
using File = Descriptor;

/// Direct input and output goes by pages, of the file and of memory.
inline constexpr std::int64_t file_page = 4096;

/// Waits until the device has all of a file or directory, however often a signal interrupts that; whether it
/// has.
bool reaches_device(const File& file);

/// Waits until the device has the names in a directory, where its file system can do that; false where that
/// failed.
bool names_reach_device(const std::string& directory);

/// A file that appears under its name only when it is whole: written beside it, flushed to the device,
/// renamed. Let go of without `commit` or `appear`, or by a process that ends before, it leaves nothing
/// behind.
class NewFile {
 public:
  explicit NewFile(const std::string& path);
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write(const void* bytes, std::size_t count);
  /// Makes the file so long, zeros behind what was written, for others to write into `unfinished()`.
  void extend(std::int64_t bytes);
  /// Name of the file until it is whole.
  const std::string& unfinished() const { return temporary_.path(); }
  void commit();
  /// Commits without waiting for the device: for a file that is soon replaced again. A machine that goes down
  /// meanwhile may keep the old file or lose both.
  void appear();
  /// Lets the file appear, but keeps the one that stood there as `earlier()` until this object goes, and
  /// `appear` brings that back. A file system that cannot do this in one move keeps nothing.
  void trade_places();
  const std::string& earlier() const { return temporary_.path(); }

 private:
  std::string path_;
  UnfinishedFile temporary_;
  File file_;
};

/// Puts a text in the place of a file, as NewFile does.
void replace_file(const std::string& path, const std::string& text);

}  // namespace mindpipe
