#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/mapped_file.h"
#include "core/tensor.h"

namespace mindpipe {

/// The element types that safetensors files name, in the order in which its usual writer ranks them.
enum class StoredType : std::uint8_t {
  boolean,
  u8,
  i8,
  f8_e5m2,
  f8_e4m3,
  i16,
  u16,
  f16,
  bf16,
  i32,
  u32,
  f32,
  f64,
  i64,
  u64
};
const char* name_of(StoredType type);  ///< name in the file: "F32"
std::size_t bytes_of(StoredType type);
StoredType stored_type(DType dtype);

/// What a file says of one tensor. Bytes [begin, end) count from the start of the data.
struct StoredTensor {
  std::string name;
  StoredType type = StoredType::f32;
  std::vector<std::int64_t> shape;  ///< empty for a scalar
  std::uint64_t begin = 0, end = 0;
  std::int64_t count() const;
};

/// A safetensors file, mapped into memory. Its header is checked as a whole before anything else is believed.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path);

  const std::string& path() const { return file_.path(); }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::string& metadata(const std::string& key) const;  ///< fails if the file has no such entry
  const std::vector<StoredTensor>& tensors() const { return tensors_; }  ///< in the order of their bytes
  const StoredTensor* find(const std::string& name) const;               ///< none: nullptr
  const StoredTensor& tensor(const std::string& name) const;  ///< fails if the file has no such tensor

  /// The tensor's bytes as they lie in the file: aligned to nothing, valid as long as this object.
  const std::byte* data(const StoredTensor& tensor) const {
    return file_.data() + data_begins_ + tensor.begin;
  }
  /// Reads `count` elements first, first + step, ... of a tensor, floating-point (F64 rounded once) or
  /// integer ones, as f32.
  void read(const StoredTensor& tensor, std::int64_t first, std::int64_t step, std::int64_t count,
            float* to) const;
  /// Says that what was read of the tensor need not stay in memory.
  void forget(const StoredTensor& tensor) const {
    file_.forget(data_begins_ + tensor.begin, tensor.end - tensor.begin);
  }
  std::vector<float> floats(const std::string& name) const;
  /// Reads a tensor of integers, which must fit into 32 bits.
  std::vector<std::int32_t> integers(const std::string& name) const;

 private:
  void read_header();
  void check_offsets(std::uint64_t data_bytes);

  MappedFile file_;
  std::size_t data_begins_ = 0;
  std::map<std::string, std::string> metadata_;
  std::vector<StoredTensor> tensors_;
  std::map<std::string, std::size_t> index_;
};

/// The bytes before the data of a file with these tensors, which come into the order of the file: by falling
/// size of their type, then by name. Sets their offsets. `path`: for complaints.
std::string safetensors_header(const std::string& path, const std::map<std::string, std::string>& metadata,
                               std::vector<StoredTensor>& tensors);

/// One tensor to be written. `data` stays the caller's.
struct TensorToStore {
  std::string name;
  StoredType type = StoredType::f32;
  std::vector<std::int64_t> shape;
  const void* data = nullptr;
};

/// Writes a safetensors file at once, which appears whole or not at all.
void write_safetensors(const std::string& path, const std::map<std::string, std::string>& metadata,
                       const std::vector<TensorToStore>& tensors);

}  // namespace mindpipe
