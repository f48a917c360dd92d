#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "core/check.h"
#include "core/handle.h"
#include "core/input_file.h"

namespace mindpipe {

/// A whole file, read-only, as memory that the system pages in when it is touched.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  /// Refuses a file of more than `largest` bytes.
  MappedFile(const std::string& path, std::int64_t largest);

  const std::string& path() const { return path_; }
  std::int64_t size() const { return static_cast<std::int64_t>(mapping_.get().bytes); }
  const std::byte* data() const { return static_cast<const std::byte*>(mapping_.get().address); }
  /// Gives back the whole pages within bytes [first, first + count); they are read again when touched.
  void forget(std::size_t first, std::size_t count) const;
  /// Refuses a file with a hole: bytes that nobody has written, and that read as zeros. For files in which
  /// there are none, as walking over terabytes of them takes hours.
  void require_written() const;
  /// The value at a byte offset, which need not be aligned.
  template <class T>
  T at(std::int64_t offset) const {
    MP_CHECK(offset >= 0 && offset <= size() - static_cast<std::int64_t>(sizeof(T)),
             "{}: offset {} of {} bytes", path_, offset, size());
    T value;
    std::memcpy(&value, data() + offset, sizeof value);
    return value;
  }

 private:
  struct Mapping {
    void* address = nullptr;
    std::size_t bytes = 0;
    bool operator==(const Mapping&) const = default;
  };
  struct Traits {
    using Raw = Mapping;
    static Mapping none() { return {}; }
    static void release(Mapping mapping) noexcept;
  };
  explicit MappedFile(const InputFile& file);

  std::string path_;
  std::int64_t hole_ = 0;
  Handle<Traits> mapping_;
};

}  // namespace mindpipe
