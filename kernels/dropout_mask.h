#pragma once
#include <cmath>

#include "backend.h"
#include "calls.h"

namespace mindpipe {

/// The mask of a dropout over rows of `cols` columns.
inline MaskRows mask_of(const Dropout& dropout, const Window& window, std::int64_t cols,
                        const char* operation) {
  MP_CHECK(dropout.probability >= 0 && dropout.probability < 1,
           "{}: probability {} (at least 0, less than 1)", operation, dropout.probability);
  MP_CHECK(window.first >= 0 && window.first + window.rows <= window.whole,
           "{}: rows {}..{} of a sequence of {}", operation, window.first, window.first + window.rows,
           window.whole);
  const auto key = dropout.stream.key();
  MaskRows mask;
  mask.key[0] = key[0];
  mask.key[1] = key[1];
  mask.step = dropout.stream.step;
  mask.sample = dropout.stream.sample;
  mask.threshold =
      static_cast<std::uint32_t>(std::llround(static_cast<double>(dropout.probability) * 0x1p32));
  mask.scale = 1.0 / (1.0 - static_cast<double>(dropout.probability));
  mask.rows = window.rows;
  mask.first = window.first;
  mask.cols = cols;
  return mask;
}

/// Columns of [samples, rows, cols] under a window.
inline std::int64_t columns_under(const Window& window, const Tensor& x, const char* operation) {
  const std::int64_t rows = window.samples * window.rows;
  MP_CHECK(rows > 0 && x.rows() == rows, "{}: {} is not {} samples of {} rows", operation, to_string(x.shape),
           window.samples, window.rows);
  return x.cols();
}

}  // namespace mindpipe
