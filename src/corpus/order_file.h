#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/mapped_file.h"

namespace mindpipe {

/// Many numbers that all ranks of a job read and one of them works out. They stand in a file, named by a hash
/// of what they follow from, which every rank maps: a machine has them in its memory once. Who finds no whole
/// file holds a lock while it makes one, so that others wait for the file instead of making their own. No
/// message is sent: ranks may ask at different times, and processes of other jobs share the file.
class OrderFile {
 public:
  /// Writes all numbers.
  using Fill = std::function<void(std::span<std::int64_t>)>;

  /// The numbers that follow from `cause`, from a file in `folder`. With an empty folder, and where the file
  /// cannot be written (a warning says why), they are worked out in this rank's own memory.
  OrderFile(const std::string& folder, const std::string& cause, std::int64_t count, const Fill& fill);

  std::span<const std::int64_t> numbers() const { return numbers_; }
  /// Path of the file; empty where the numbers are in memory.
  std::string path() const { return file_ ? file_->path() : ""; }

 private:
  /// Maps the file if it is whole; else says in `problem` what is wrong with one that is there.
  bool map(const std::string& path, std::string& problem);
  /// Writes the file; gives the reason where that cannot be.
  std::string make(const std::string& path, const Fill& fill);

  std::string cause_;
  std::int64_t count_;
  std::optional<MappedFile> file_;
  std::vector<std::int64_t> memory_;
  std::span<const std::int64_t> numbers_;
};

}  // namespace mindpipe
