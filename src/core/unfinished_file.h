#pragma once
#include <string>

namespace mindpipe {

/// A file that is being written under a name for the time. It goes with this object, and with the process if
/// that ends on the way, unless it has become what it was to be: failures end a process without unwinding,
/// and signals without a thought.
class UnfinishedFile {
 public:
  /// Before the file is made.
  explicit UnfinishedFile(const std::string& path);
  UnfinishedFile(const UnfinishedFile&) = delete;
  UnfinishedFile& operator=(const UnfinishedFile&) = delete;
  ~UnfinishedFile();

  const std::string& path() const;
  /// Gives the whole file its name for good, in one move; false, with errno, where that fails.
  [[nodiscard]] bool becomes(const std::string& path);

 private:
  struct Entry;
  friend void remove_unfinished_files() noexcept;

  Entry* entry_;
};

/// Removes all that there are, before a process ends without unwinding. From any thread, also in a signal's
/// handler.
void remove_unfinished_files() noexcept;

}  // namespace mindpipe
