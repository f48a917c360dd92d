#include "operations/picks.h"

#include <cstring>

#include "cpu/cpu_backend.h"
#include "cpu/parallel.h"
#include "cpu/simd/elementwise_kernels.h"

namespace mindpipe {
namespace {

/// Puts rows back, of any dtype: what is picked more than once is added in the wide dtype, by strips of
/// columns.
class RowPutter {
 public:
  RowPutter(Isa isa, const PutRowsOperands& o)
      : o_(o),
        call_(o.checked()),
        bytes_(static_cast<std::int64_t>(bytes_of(o.dx.dtype))),
        widen_(of(isa).convert[dtype_index(o.dx.dtype)][dtype_index(wide(o.dx.dtype))]),
        round_(of(isa).convert[dtype_index(wide(o.dx.dtype))][dtype_index(o.dx.dtype)]),
        accumulate_(of(isa).accumulate[dtype_index(o.dx.dtype)]) {}

  std::int64_t rows() const { return call_.samples * call_.rows; }
  std::int64_t cols() const { return call_.cols; }
  /// Fills row n of all rows of dx.
  void put(std::int64_t n) const {
    const std::int64_t sample = n / call_.rows, row = call_.first + n % call_.rows;
    const auto* rows = o_.rows.as<std::int32_t>() + sample * call_.picked;
    std::byte* to = o_.dx.as<std::byte>() + n * call_.cols * bytes_;
    std::int64_t first = 0;
    while (first < call_.picked && rows[first] != row) ++first;
    if (first == call_.picked) {
      std::memset(to, 0, static_cast<std::size_t>(call_.cols * bytes_));
      return;
    }
    for (std::int64_t begin = 0; begin < call_.cols; begin += strip) {
      const std::int64_t count = std::min(strip, call_.cols - begin);
      alignas(64) double sum[strip];
      widen_(picked(sample, first, begin), sum, 0, count);
      for (std::int64_t i = first + 1; i < call_.picked; ++i)
        if (rows[i] == row) accumulate_(picked(sample, i, begin), sum, 0, count);
      round_(sum, to + begin * bytes_, 0, count);
    }
  }

 private:
  static constexpr std::int64_t strip = 256;
  static const ElementwiseKernels& of(Isa isa) { return MINDPIPE_PICK_KERNELS(isa, elementwise_kernels); }
  const std::byte* picked(std::int64_t sample, std::int64_t i, std::int64_t column) const {
    return o_.dy.as<std::byte>() + ((sample * call_.picked + i) * call_.cols + column) * bytes_;
  }

  const PutRowsOperands& o_;
  PickCall call_;
  std::int64_t bytes_;
  void (*widen_)(const void*, void*, std::int64_t, std::int64_t);
  void (*round_)(const void*, void*, std::int64_t, std::int64_t);
  void (*accumulate_)(const void*, void*, std::int64_t, std::int64_t);
};

}  // namespace

void CpuBackend::run(const PickRowsOperands& o) {
  const PickCall call = o.checked();
  const auto* rows = o.rows.as<std::int32_t>();
  const std::size_t bytes = static_cast<std::size_t>(call.cols) * bytes_of(o.x.dtype);
  in_ranges(threads_, call.samples * call.picked, row_grain(call.cols), [&](auto first, auto last) {
    for (std::int64_t n = first; n < last; ++n) {
      const std::int64_t row = rows[n], from = n / call.picked * call.rows + row;
      std::byte* to = o.y.as<std::byte>() + n * static_cast<std::int64_t>(bytes);
      if (row >= 0 && row < call.rows)
        std::memcpy(to, o.x.as<std::byte>() + from * static_cast<std::int64_t>(bytes), bytes);
      else std::memset(to, 0, bytes);
    }
  });
}

void CpuBackend::run(const PutRowsOperands& o) {
  const RowPutter putter(isa_, o);
  in_ranges(threads_, putter.rows(), row_grain(putter.cols()), [&](auto first, auto last) {
    for (std::int64_t n = first; n < last; ++n) putter.put(n);
  });
}

}  // namespace mindpipe
