#include "io/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "core/check.h"
#include "core/strict_json.h"
#include "core/text.h"
#include "io/file.h"

namespace mindpipe {
namespace {

static_assert(std::endian::native == std::endian::little,
              "the files are little-endian and their bytes are used as they are");
using Json = nlohmann::json;

constexpr std::uint64_t largest_header = std::uint64_t{16} << 20;
constexpr std::int64_t most_header_memory = std::int64_t{96} << 20;  // 100,000 tensors with long names

struct TypeRow {
  StoredType type;
  const char* name;
  std::size_t bytes;
};
constexpr std::array<TypeRow, 15> types{{{StoredType::boolean, "BOOL", 1},
                                         {StoredType::u8, "U8", 1},
                                         {StoredType::i8, "I8", 1},
                                         {StoredType::f8_e5m2, "F8_E5M2", 1},
                                         {StoredType::f8_e4m3, "F8_E4M3", 1},
                                         {StoredType::i16, "I16", 2},
                                         {StoredType::u16, "U16", 2},
                                         {StoredType::f16, "F16", 2},
                                         {StoredType::bf16, "BF16", 2},
                                         {StoredType::i32, "I32", 4},
                                         {StoredType::u32, "U32", 4},
                                         {StoredType::f32, "F32", 4},
                                         {StoredType::f64, "F64", 8},
                                         {StoredType::i64, "I64", 8},
                                         {StoredType::u64, "U64", 8}}};
const TypeRow& row_of(StoredType type) { return types[static_cast<std::size_t>(type)]; }

/// The bytes of a shape, or false where they cannot be counted in 63 bits.
bool bytes_of_shape(const std::vector<std::int64_t>& shape, StoredType type, std::uint64_t& bytes) {
  std::int64_t product = static_cast<std::int64_t>(bytes_of(type));
  for (const std::int64_t extent : shape)
    if (__builtin_mul_overflow(product, extent, &product)) return false;
  bytes = static_cast<std::uint64_t>(product);
  return true;
}

std::uint64_t natural(const std::string& path, const std::string& name, const char* what, const Json& value) {
  MP_REQUIRE(
      value.is_number_unsigned() &&
          value.get<std::uint64_t>() <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()),
      Exit::bad_data, "{}: tensor '{}' has {} in its {} (expected a whole number from 0)", path, name,
      printable(value.dump(-1, ' ', false, Json::error_handler_t::replace), 40), what);
  return value.get<std::uint64_t>();
}

const Json& member(const std::string& path, const std::string& name, const Json& entry, const char* key,
                   Json::value_t type) {
  const auto found = entry.find(key);
  MP_REQUIRE(found != entry.end() && found->type() == type, Exit::bad_data,
             "{}: tensor '{}' has no usable '{}' (expected {})", path, name, key,
             type == Json::value_t::string ? "a text" : "a list");
  return *found;
}

StoredTensor read_entry(const std::string& path, const std::string& name, const Json& entry) {
  MP_REQUIRE(entry.is_object() && entry.size() == 3, Exit::bad_data,
             "{}: tensor '{}' is not described by dtype, shape and data_offsets alone", path, name);
  StoredTensor tensor;
  tensor.name = name;
  const std::string dtype = member(path, name, entry, "dtype", Json::value_t::string);
  const auto row =
      std::find_if(types.begin(), types.end(), [&](const TypeRow& one) { return dtype == one.name; });
  MP_REQUIRE(row != types.end(), Exit::bad_data,
             "{}: tensor '{}' has dtype '{}' (known are BOOL, U8 to I64, F16, BF16, F32, F64)", path, name,
             dtype);
  tensor.type = row->type;
  for (const Json& extent : member(path, name, entry, "shape", Json::value_t::array))
    tensor.shape.push_back(static_cast<std::int64_t>(natural(path, name, "shape", extent)));
  const Json& offsets = member(path, name, entry, "data_offsets", Json::value_t::array);
  MP_REQUIRE(offsets.size() == 2, Exit::bad_data,
             "{}: tensor '{}' has {} data_offsets (expected a begin and an end)", path, name, offsets.size());
  tensor.begin = natural(path, name, "data_offsets", offsets[0]);
  tensor.end = natural(path, name, "data_offsets", offsets[1]);
  return tensor;
}

}  // namespace

const char* name_of(StoredType type) { return row_of(type).name; }
std::size_t bytes_of(StoredType type) { return row_of(type).bytes; }

StoredType stored_type(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return StoredType::f64;
    case DType::f32:
      return StoredType::f32;
    case DType::bf16:
      return StoredType::bf16;
    case DType::i32:
      return StoredType::i32;
    case DType::u8:
      return StoredType::u8;
    case DType::i64:
      return StoredType::i64;
  }
  MP_CHECK(false, "dtype {} has no name in safetensors", static_cast<int>(dtype));
}

std::int64_t StoredTensor::count() const { return static_cast<std::int64_t>((end - begin) / bytes_of(type)); }

SafetensorsFile::SafetensorsFile(const std::string& path) : file_(path) { read_header(); }

void SafetensorsFile::read_header() {
  const std::string& path = file_.path();
  const auto file_bytes = static_cast<std::uint64_t>(file_.size());
  MP_REQUIRE(file_bytes >= 10, Exit::bad_data,
             "{}: has {} bytes (a safetensors file has at least 10); is it whole?", path, file_bytes);
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, file_.data(), 8);
  MP_REQUIRE(header_bytes <= largest_header, Exit::bad_data,
             "{}: offset 0 gives a header of {} bytes (at most {}); is it a safetensors file?", path,
             header_bytes, largest_header);
  MP_REQUIRE(header_bytes <= file_bytes - 8, Exit::bad_data,
             "{}: offset 0 gives a header of {} bytes, and the file has {} after it; is it whole?", path,
             header_bytes, file_bytes - 8);
  const char* text = reinterpret_cast<const char*>(file_.data()) + 8;
  MP_REQUIRE(header_bytes >= 2 && *text == '{', Exit::bad_data,
             "{}: the header at offset 8 does not begin with '{{'", path);
  const Json header = parse_json({text, header_bytes}, {.path = path,
                                                        .expected = "the header of a safetensors file",
                                                        .part = "the header",
                                                        .most_memory = most_header_memory,
                                                        .begins = 8});
  data_begins_ = 8 + header_bytes;
  for (const auto& [name, entry] : header.items()) {
    if (name != "__metadata__") {
      tensors_.push_back(read_entry(path, name, entry));
      continue;
    }
    MP_REQUIRE(entry.is_object(), Exit::bad_data, "{}: __metadata__ is not a mapping of texts", path);
    for (const auto& [key, value] : entry.items()) {
      MP_REQUIRE(value.is_string(), Exit::bad_data,
                 "{}: __metadata__ has a value for '{}' that is not a text", path, key);
      metadata_[key] = value;
    }
  }
  check_offsets(file_bytes - data_begins_);
}

void SafetensorsFile::check_offsets(std::uint64_t data_bytes) {
  const std::string& path = file_.path();
  std::sort(tensors_.begin(), tensors_.end(), [](const auto& a, const auto& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  std::uint64_t reached = 0;
  for (const StoredTensor& tensor : tensors_) {
    std::uint64_t bytes = 0;
    MP_REQUIRE(
        bytes_of_shape(tensor.shape, tensor.type, bytes) && tensor.begin <= tensor.end &&
            tensor.end - tensor.begin == bytes,
        Exit::bad_data,
        "{}: tensor '{}' takes bytes {} to {} of the data, which is not the size of its shape [{}] of {}",
        path, tensor.name, tensor.begin, tensor.end, fmt::join(tensor.shape, ","), name_of(tensor.type));
    MP_REQUIRE(tensor.begin == reached, Exit::bad_data,
               "{}: tensor '{}' begins at byte {} of the data (expected {}: no hole, no overlap)", path,
               tensor.name, tensor.begin, reached);
    reached = tensor.end;
    index_[tensor.name] = static_cast<std::size_t>(&tensor - tensors_.data());
  }
  MP_REQUIRE(reached == data_bytes, Exit::bad_data,
             "{}: the tensors take {} bytes and the file has {} for them; is it whole?", path, reached,
             data_bytes);
}

const std::string& SafetensorsFile::metadata(const std::string& key) const {
  const auto found = metadata_.find(key);
  MP_REQUIRE(found != metadata_.end(), Exit::bad_data, "{}: __metadata__ has no '{}'", path(), key);
  return found->second;
}

const StoredTensor* SafetensorsFile::find(const std::string& name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

const StoredTensor& SafetensorsFile::tensor(const std::string& name) const {
  const StoredTensor* found = find(name);
  MP_REQUIRE(found, Exit::bad_data, "{}: has no tensor '{}' among its {}; is it a file of this model?",
             path(), name, tensors_.size());
  return *found;
}

namespace {

/// Calls use(i, element) for `count` unaligned elements of Raw, each `step` behind the one before.
template <class Raw, class Use>
void each(const std::byte* from, std::int64_t step, std::int64_t count, Use use) {
  for (std::int64_t i = 0; i < count; ++i) {
    Raw raw;
    std::memcpy(&raw, from + i * step * static_cast<std::int64_t>(sizeof raw), sizeof raw);
    use(i, raw);
  }
}

float from_half(std::uint16_t half) {
  const std::uint32_t sign = std::uint32_t{half & 0x8000u} << 16, exponent = half >> 10 & 31,
                      fraction = half & 1023;
  if (exponent == 0) return (sign ? -1.0f : 1.0f) * static_cast<float>(fraction) * 0x1p-24f;
  return std::bit_cast<float>(sign | (exponent == 31 ? 255u : exponent + 112) << 23 | fraction << 13);
}

}  // namespace

void SafetensorsFile::read(const StoredTensor& tensor, std::int64_t first, std::int64_t step,
                           std::int64_t count, float* to) const {
  MP_CHECK(count == 0 || (first >= 0 && first + (count - 1) * step < tensor.count()),
           "{}: element {} of tensor '{}', which has {}", path(), first + (count - 1) * step, tensor.name,
           tensor.count());
  const std::byte* from = data(tensor) + first * static_cast<std::int64_t>(bytes_of(tensor.type));
  const auto plain = [to](std::int64_t i, auto raw) { to[i] = static_cast<float>(raw); };
  switch (tensor.type) {
    case StoredType::f32:
      if (step == 1 && count > 0) std::memcpy(to, from, static_cast<std::size_t>(count) * 4);
      else each<float>(from, step, count, plain);
      return;
    case StoredType::bf16:
      return each<std::uint16_t>(from, step, count, [to](std::int64_t i, std::uint16_t raw) {
        to[i] = std::bit_cast<float>(std::uint32_t{raw} << 16);
      });
    case StoredType::f16:
      return each<std::uint16_t>(from, step, count,
                                 [to](std::int64_t i, std::uint16_t raw) { to[i] = from_half(raw); });
    case StoredType::f64:
      return each<double>(from, step, count, plain);
    case StoredType::u8:
      return each<std::uint8_t>(from, step, count, plain);
    case StoredType::i32:
      return each<std::int32_t>(from, step, count, plain);
    case StoredType::i64:
      return each<std::int64_t>(from, step, count, plain);
    default:
      fail(Exit::bad_data, "{}: tensor '{}' has dtype {}, which is not read as numbers here", path(),
           tensor.name, name_of(tensor.type));
  }
}

std::vector<float> SafetensorsFile::floats(const std::string& name) const {
  const StoredTensor& found = tensor(name);
  std::vector<float> values(static_cast<std::size_t>(found.count()));
  read(found, 0, 1, found.count(), values.data());
  return values;
}

std::vector<std::int32_t> SafetensorsFile::integers(const std::string& name) const {
  const StoredTensor& found = tensor(name);
  std::vector<std::int32_t> values(static_cast<std::size_t>(found.count()));
  const auto use = [&](std::int64_t i, auto raw) {
    MP_REQUIRE(std::in_range<std::int32_t>(raw), Exit::bad_data,
               "{}: tensor '{}' has {} at element {} (expected 32 bits)", path(), name, raw, i);
    values[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(raw);
  };
  switch (found.type) {
    case StoredType::u8:
      each<std::uint8_t>(data(found), 1, found.count(), use);
      break;
    case StoredType::u16:
      each<std::uint16_t>(data(found), 1, found.count(), use);
      break;
    case StoredType::i32:
      each<std::int32_t>(data(found), 1, found.count(), use);
      break;
    case StoredType::i64:
      each<std::int64_t>(data(found), 1, found.count(), use);
      break;
    default:
      fail(Exit::bad_data, "{}: tensor '{}' has dtype {} (expected whole numbers: U8, U16, I32 or I64)",
           path(), name, name_of(found.type));
  }
  return values;
}

namespace {

std::vector<StoredTensor> in_file_order(std::vector<StoredTensor> tensors) {
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    return bytes_of(a.type) != bytes_of(b.type) ? bytes_of(a.type) > bytes_of(b.type) : a.name < b.name;
  });
  std::set<std::string> names;
  std::uint64_t offset = 0;
  for (StoredTensor& tensor : tensors) {
    MP_CHECK(names.insert(tensor.name).second && tensor.name != "__metadata__",
             "tensor '{}' cannot be stored under this name again", tensor.name);
    MP_CHECK(std::all_of(tensor.shape.begin(), tensor.shape.end(), [](std::int64_t n) { return n >= 0; }),
             "tensor '{}' has a negative extent", tensor.name);
    std::uint64_t bytes = 0;
    MP_CHECK(bytes_of_shape(tensor.shape, tensor.type, bytes), "tensor '{}' is larger than any memory",
             tensor.name);
    tensor.begin = offset;
    tensor.end = offset += bytes;
  }
  return tensors;
}

}  // namespace

std::string safetensors_header(const std::string& path, const std::map<std::string, std::string>& metadata,
                               std::vector<StoredTensor>& tensors) {
  tensors = in_file_order(std::move(tensors));
  std::string header = "{";
  if (!metadata.empty()) header += fmt::format("\"__metadata__\":{}", Json(metadata).dump());
  for (const StoredTensor& tensor : tensors)
    header += fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                          header.size() > 1 ? "," : "", Json(tensor.name).dump(), name_of(tensor.type),
                          fmt::join(tensor.shape, ","), tensor.begin, tensor.end);
  header += '}';
  header.resize((header.size() + 7) / 8 * 8, ' ');
  MP_REQUIRE(header.size() <= largest_header, Exit::cannot_create,
             "{}: {} tensors need a header of {} bytes (at most {}); write several files", path,
             tensors.size(), header.size(), largest_header);
  const std::uint64_t bytes = header.size();
  return std::string(reinterpret_cast<const char*>(&bytes), sizeof bytes) + header;
}

void write_safetensors(const std::string& path, const std::map<std::string, std::string>& metadata,
                       const std::vector<TensorToStore>& tensors) {
  std::vector<StoredTensor> described;
  std::map<std::string, const void*> data;
  for (const TensorToStore& tensor : tensors) {
    described.push_back({tensor.name, tensor.type, tensor.shape});
    data[tensor.name] = tensor.data;
  }
  const std::string header = safetensors_header(path, metadata, described);
  NewFile file(path);
  file.write(header.data(), header.size());
  for (const StoredTensor& tensor : described) file.write(data.at(tensor.name), tensor.end - tensor.begin);
  file.commit();
}

}  // namespace mindpipe
