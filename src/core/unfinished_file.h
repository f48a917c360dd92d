#pragma once
#include <string>

namespace mindpipe {

/// A file that is being written under a name for the time. It is removed with this object, and with a process
/// that ends on the way, unless it has been given its name for good. Failures end a process without
/// unwinding, and signals without a thought.
class UnfinishedFile {
 public:
  /// Registers the path, before the file is made.
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

/// Removes all unfinished files before an end without unwinding, from any thread or signal's handler.
void remove_unfinished_files() noexcept;

}  // namespace mindpipe
