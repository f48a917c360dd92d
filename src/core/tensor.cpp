#include "core/tensor.h"

namespace mindpipe {

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (int i = 0; i < shape.rank; ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

Tensor Tensor::reshaped(const Shape& other) const {
  MP_CHECK(other.count() == shape.count(), "{} seen as {}", to_string(shape), to_string(other));
  return {data, other, dtype};
}

Tensor Tensor::at(std::int64_t i) const {
  MP_CHECK(shape.rank > 1 && i >= 0 && i < shape[0], "element {} of {}", i, to_string(shape));
  Tensor part = *this;
  part.shape.rank = shape.rank - 1;
  for (int k = 0; k < part.shape.rank; ++k) part.shape.extent[k] = shape[k + 1];
  part.shape.extent[part.shape.rank] = 0;
  part.data = static_cast<std::byte*>(data) + i * part.bytes();
  return part;
}

Tensor Tensor::row_range(std::int64_t first, std::int64_t rows) const {
  MP_CHECK(first >= 0 && first + rows <= shape.rows(), "rows {}..{} of {}", first, first + rows,
           to_string(shape));
  Tensor part{
      static_cast<std::byte*>(data) + first * shape.cols() * bytes_of(dtype), {rows, shape.cols()}, dtype};
  return part;
}

Tensor Tensor::range(std::int64_t first, std::int64_t elements) const {
  MP_CHECK(first >= 0 && first + elements <= count(), "elements {}..{} of {}", first, first + elements,
           to_string(shape));
  return {static_cast<std::byte*>(data) + first * bytes_of(dtype), {elements}, dtype};
}

}  // namespace mindpipe
