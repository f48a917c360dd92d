#pragma once
#include <cstddef>
#include <string>

#include "core/handle.h"

namespace mindpipe {

struct FileTraits {
  using Raw = int;
  static Raw none() { return -1; }
  static void release(Raw raw) noexcept;
};
/// An open file, closed when it goes.
class File : public Handle<FileTraits> {
 public:
  File() : Handle(FileTraits::none()) {}
  explicit File(int raw) : Handle(raw) {}
};

/// Opens an existing regular file for reading, or fails with the sentence and the exit code that fit.
File open_to_read(const std::string& path);

/// A whole file, seen as memory that is read only. An empty file has a size of 0 and no address.
class MappedFile {
 public:
  MappedFile() = default;
  explicit MappedFile(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  const std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// A file that appears under its name only when it is whole: written beside it, flushed to the device, renamed.
/// Let go of without `commit`, it leaves nothing behind.
class NewFile {
 public:
  explicit NewFile(const std::string& path);
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile();

  void write(const void* bytes, std::size_t count);
  void commit();

 private:
  std::string path_, temporary_;
  File file_;
  bool committed_ = false;
};

}  // namespace mindpipe
