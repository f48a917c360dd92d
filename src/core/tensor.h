#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "core/check.h"
#include "core/kinds.h"

namespace mindpipe {

#define MINDPIPE_DTYPES(kind) \
  kind(f64, "f64") kind(f32, "f32") kind(bf16, "bf16") kind(i32, "i32") kind(u8, "u8") kind(i64, "i64")
MINDPIPE_KINDS(DType, NamedRow, MINDPIPE_DTYPES)
constexpr std::size_t bytes_of(DType t) {
  return t == DType::f64 || t == DType::i64 ? 8 : t == DType::bf16 ? 2 : t == DType::u8 ? 1 : 4;
}

/// Extents of a tensor, outermost first. At most four, always contiguous: there are no strides to get wrong.
struct Shape {
  std::array<std::int64_t, 4> extent{};
  int rank = 0;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> list) : rank(static_cast<int>(list.size())) {
    MP_CHECK(list.size() <= 4, "shape of rank {} (at most 4)", list.size());
    int i = 0;
    for (auto n : list) extent[i++] = n;
  }
  std::int64_t operator[](int i) const { return extent[i]; }
  std::int64_t count() const {
    std::int64_t n = rank == 0 ? 0 : 1;
    for (int i = 0; i < rank; ++i) n *= extent[i];
    return n;
  }
  std::int64_t cols() const { return rank == 0 ? 0 : extent[rank - 1]; }
  std::int64_t rows() const { return cols() == 0 ? 0 : count() / cols(); }
  bool operator==(const Shape&) const = default;
};
std::string to_string(const Shape& shape);

/// A shaped view of memory that somebody else owns. Copying it copies the view. A default tensor is "none".
struct Tensor {
  void* data = nullptr;
  Shape shape;
  DType dtype = DType::f32;

  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
  explicit operator bool() const { return data != nullptr; }
  std::int64_t count() const { return shape.count(); }
  std::int64_t rows() const { return shape.rows(); }
  std::int64_t cols() const { return shape.cols(); }
  std::size_t bytes() const { return static_cast<std::size_t>(count()) * bytes_of(dtype); }
  /// This tensor's elements under another shape.
  Tensor reshaped(const Shape& other) const;
  /// Element `i` of the outermost extent: of [shard][rows][columns], shard i.
  Tensor at(std::int64_t i) const;
  /// Rows [first, first + rows) of the tensor seen as a matrix [rows, cols].
  Tensor row_range(std::int64_t first, std::int64_t rows) const;
  /// Elements [first, first + elements) of the tensor seen as a vector.
  Tensor range(std::int64_t first, std::int64_t elements) const;
};

}  // namespace mindpipe
