#include "cpu/simd/elementwise_kernels.h"

#include <cstring>

#include "cpu/cpu_backend.h"
#include "cpu/parallel.h"
#include "cpu/row_work.h"
#include "row_operands.h"

namespace mindpipe {

void CpuBackend::add(const Tensor& a, const Tensor& b, const Tensor& sum) {
  require(b, a.count(), a.dtype, "add", "b");
  require(sum, a.count(), a.dtype, "add", "sum");
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, elementwise_kernels).add[slot(a.dtype)];
  in_ranges(threads_, a.count(), element_grain,
            [&](auto first, auto last) { kernel(a.data, b.data, sum.data, first, last); });
  progress();
}

void CpuBackend::maximum(const Tensor& a, const Tensor& b, const Tensor& largest) {
  require(b, a.count(), a.dtype, "maximum", "b");
  require(largest, a.count(), a.dtype, "maximum", "largest");
  require_dtype(a, wide(a.dtype), "maximum", "a");
  const auto pick = [&](auto number) {
    using T = decltype(number);
    const T *x = a.as<T>(), *y = b.as<T>();
    T* out = largest.as<T>();
    in_ranges(threads_, a.count(), element_grain, [=](auto first, auto last) {
      for (std::int64_t i = first; i < last; ++i) out[i] = x[i] > y[i] || x[i] != x[i] ? x[i] : y[i];
    });
  };
  if (a.dtype == DType::f32) pick(0.0f);
  else pick(0.0);
  progress();
}

void CpuBackend::accumulate(const Tensor& part, const Tensor& total) {
  require(total, part.count(), wide(part.dtype), "accumulate", "total");
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, elementwise_kernels).accumulate[slot(part.dtype)];
  in_ranges(threads_, part.count(), element_grain,
            [&](auto first, auto last) { kernel(part.data, total.data, first, last); });
  progress();
}

void CpuBackend::convert(const Tensor& x, const Tensor& y) {
  require_count(y, x.count(), "convert", "y");
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, elementwise_kernels).convert[slot(x.dtype)][slot(y.dtype)];
  in_ranges(threads_, x.count(), element_grain,
            [&](auto first, auto last) { kernel(x.data, y.data, first, last); });
  progress();
}

void CpuBackend::swiglu(const Tensor& gate_up, const Tensor& y) {
  const std::int64_t rows = y.rows(), cols = y.cols();
  require(gate_up, 2 * rows * cols, y.dtype, "swiglu", "gate_up");
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, elementwise_kernels).swiglu[slot(y.dtype)];
  in_ranges(threads_, rows, row_grain(cols),
            [&](auto first, auto last) { kernel(gate_up.data, y.data, cols, first, last); });
  progress();
}

void CpuBackend::swiglu_backward(const Tensor& dy, const Tensor& gate_up, const Tensor& dgate_up) {
  const std::int64_t rows = dy.rows(), cols = dy.cols();
  require(gate_up, 2 * rows * cols, dy.dtype, "swiglu_backward", "gate_up");
  require(dgate_up, 2 * rows * cols, dy.dtype, "swiglu_backward", "dgate_up");
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, elementwise_kernels).swiglu_backward[slot(dy.dtype)];
  in_ranges(threads_, rows, row_grain(cols),
            [&](auto first, auto last) { kernel(dy.data, gate_up.data, dgate_up.data, cols, first, last); });
  progress();
}

ResidualRows residual_rows(Isa isa, const Tensor& x, const Tensor& branch, const Tensor& bias,
                           const Dropout& dropout, const Window& window, const Tensor& y) {
  return {
      MINDPIPE_PICK_KERNELS(isa, elementwise_kernels).residual[slot(x.dtype)], x.data, branch.data, bias.data,
      residual_mask(x, branch, bias, dropout, window, y, "residual"),          y.data};
}

void CpuBackend::residual(const Tensor& x, const Tensor& branch, const Tensor& bias, const Dropout& dropout,
                          const Window& window, const Tensor& y) {
  in_ranges(threads_, x.rows(), row_grain(x.cols()),
            residual_rows(isa_, x, branch, bias, dropout, window, y));
  progress();
}

void CpuBackend::dropout(const Tensor& x, const Dropout& dropout, const Window& window, const Tensor& y) {
  const std::int64_t cols = columns_under(window, x, "dropout");
  require(y, x.count(), x.dtype, "dropout", "y");
  const MaskRows mask = mask_of(dropout, window, cols, "dropout");
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, elementwise_kernels).dropout[slot(x.dtype)];
  if (mask.threshold != 0)
    in_ranges(threads_, x.rows(), row_grain(cols),
              [&](auto first, auto last) { kernel(x.data, mask, y.data, first, last); });
  else if (x.data != y.data) std::memcpy(y.data, x.data, x.bytes());
  progress();
}

void CpuBackend::fill(const Tensor& x, double value) {
  const auto fill_as = [&](auto number) {
    auto* p = static_cast<decltype(number)*>(x.data);
    in_ranges(threads_, x.count(), element_grain,
              [=](auto first, auto last) { std::fill(p + first, p + last, number); });
  };
  switch (x.dtype) {
    case DType::f64:
      fill_as(value);
      break;
    case DType::f32:
      fill_as(static_cast<float>(value));
      break;
    case DType::i32:
      fill_as(static_cast<std::int32_t>(value));
      break;
    case DType::u8:
      fill_as(static_cast<std::uint8_t>(value));
      break;
    case DType::bf16: {
      std::uint16_t bits = 0;
      MINDPIPE_PICK_KERNELS(isa_, elementwise_kernels)
          .convert[slot(DType::f64)][slot(DType::bf16)](&value, &bits, 0, 1);
      fill_as(bits);
      break;
    }
  }
  progress();
}

}  // namespace mindpipe
