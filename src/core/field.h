#pragma once
#include <array>
#include <span>
#include <string_view>

#include "core/tensor.h"

namespace mindpipe {

/// A piece of every sample: models ask for fields, data sets give them.
struct Field {
  std::string_view name;    ///< a literal, like those in field::
  DType type = DType::i32;  ///< i32, u8 or f32
  Shape shape;              ///< shape of one sample, at most two extents; {1}: a number
  std::int64_t below = 0;   ///< what every number is less than: a vocabulary, classes; 0: it may be any
  std::int64_t planes = 1;  ///< planes one behind the other along the first extent: channels of a picture

  /// The shape of `count` samples one after the other, or of `groups` of them.
  Shape of(std::int64_t count) const;
  Shape of(std::int64_t groups, std::int64_t count) const;
  bool operator==(const Field&) const = default;
};

/// Names that several models use. A target that does not count is negative.
namespace field {
inline constexpr std::string_view tokens = "tokens", targets = "targets", source = "source",
                                  source_lengths = "source_lengths", types = "types", picked = "picked",
                                  picture = "picture";
}

/// Tensors by the names of the fields that they hold. Takes no memory of its own.
class FieldTensors {
 public:
  struct Entry {
    std::string_view name;
    Tensor tensor;
  };
  void set(std::string_view name, const Tensor& tensor);
  /// The field's tensor; none where the field is not there.
  Tensor find(std::string_view name) const;
  /// The field's tensor, which must be there.
  const Tensor& at(std::string_view name) const;
  std::span<const Entry> entries() const { return std::span(entries_).first(count_); }
  /// Element `i` of the outermost extent of every tensor.
  FieldTensors part(std::int64_t i) const;

 private:
  static constexpr std::size_t most = 8;
  std::array<Entry, most> entries_{};
  std::size_t count_ = 0;
};

}  // namespace mindpipe
