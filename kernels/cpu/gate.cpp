#include "cpu/simd/gate_kernels.h"

#include <cstring>

#include "cpu/activation_f64.h"
#include "cpu/cpu_backend.h"
#include "cpu/parallel.h"
#include "cpu/simd/elementwise_kernels.h"
#include "operations/gates.h"

namespace mindpipe {
namespace {

/// Copies columns to their place in a row and fills the rest of it with zeros.
void pad_row(const std::byte* x, std::size_t there, std::byte* y, std::size_t before, std::size_t wide) {
  std::memset(y, 0, before);
  std::memcpy(y + before, x, there);
  std::memset(y + before + there, 0, wide - before - there);
}

}  // namespace

void CpuBackend::run(const GateOperands& o) {
  const std::int64_t cols = o.y.cols();
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, gate_kernels).gate[dtype_index(o.y.dtype)];
  in_ranges(threads_, o.y.rows(), row_grain(cols),
            [&](auto first, auto last) { kernel(o.both.data, o.y.data, cols, first, last); });
}

void CpuBackend::run(const GateBackwardOperands& o) {
  const std::int64_t cols = o.dy.cols();
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, gate_kernels).gate_backward[dtype_index(o.dy.dtype)];
  in_ranges(threads_, o.dy.rows(), row_grain(cols),
            [&](auto first, auto last) { kernel(o.dy.data, o.both.data, o.dboth.data, cols, first, last); });
}

void CpuBackend::run(const ActivationOperands& o) {
  if (o.x.dtype == DType::f64) {
    for (std::int64_t i = 0; i < o.x.count(); ++i)
      o.y.as<double>()[i] = f64::activated(o.activation, o.x.as<double>()[i]);
    return;
  }
  const auto kernel =
      MINDPIPE_PICK_KERNELS(isa_, gate_kernels).activation[dtype_index(o.x.dtype) - dtype_index(DType::f32)];
  in_ranges(threads_, o.x.count(), element_grain,
            [&](auto first, auto last) { kernel(o.activation, o.x.data, o.y.data, first, last); });
}

void CpuBackend::run(const ClearPaddingOperands& o) {
  const LengthCall call = o.checked();
  const std::size_t row = static_cast<std::size_t>(call.cols) * bytes_of(o.x.dtype);
  const auto* x = o.x.as<std::byte>();
  auto* y = o.y.as<std::byte>();
  in_ranges(threads_, o.x.rows(), row_grain(call.cols), [&](auto first, auto last) {
    for (std::int64_t n = first; n < last; ++n) {
      const std::size_t at = static_cast<std::size_t>(n) * row;
      if (n % call.rows >= call.lengths[n / call.rows]) std::memset(y + at, 0, row);
      else if (x != y) std::memcpy(y + at, x + at, row);
    }
  });
}

void CpuBackend::run(const PadColumnsOperands& o) {
  const std::int64_t cols = o.x.cols(), whole = o.y.cols();
  const std::size_t element = bytes_of(o.y.dtype), narrow = static_cast<std::size_t>(cols) * element,
                    wide_row = static_cast<std::size_t>(whole) * element,
                    before = static_cast<std::size_t>(o.first) * element;
  const auto add = MINDPIPE_PICK_KERNELS(isa_, elementwise_kernels).add[dtype_index(o.y.dtype)];
  const auto *x = o.x.as<std::byte>(), *sum = o.sum.as<std::byte>();
  auto* y = o.y.as<std::byte>();
  in_ranges(threads_, o.y.rows(), row_grain(whole), [&](auto first, auto last) {
    for (std::int64_t n = first; n < last; ++n) {
      const std::size_t from = static_cast<std::size_t>(n) * narrow,
                        to = static_cast<std::size_t>(n) * wide_row;
      if (sum == nullptr) {
        pad_row(x + from, narrow, y + to, before, wide_row);
        continue;
      }
      const std::size_t there = to + before, behind = there + narrow;
      add(sum + there, x + from, y + there, 0, cols);
      if (sum == y) continue;
      std::memcpy(y + to, sum + to, before);
      std::memcpy(y + behind, sum + behind, wide_row - narrow - before);
    }
  });
}

void CpuBackend::run(const CutColumnsOperands& o) {
  const std::size_t element = bytes_of(o.y.dtype), narrow = static_cast<std::size_t>(o.y.cols()) * element,
                    wide_row = static_cast<std::size_t>(o.x.cols()) * element,
                    before = static_cast<std::size_t>(o.first) * element;
  in_ranges(threads_, o.y.rows(), row_grain(o.y.cols()), [&](auto first, auto last) {
    for (std::int64_t n = first; n < last; ++n)
      std::memcpy(o.y.as<std::byte>() + static_cast<std::size_t>(n) * narrow,
                  o.x.as<std::byte>() + static_cast<std::size_t>(n) * wide_row + before, narrow);
  });
}

void CpuBackend::run(const MultiplyColumnsOperands& o) {
  const std::int64_t cols = o.factor.cols(), whole = o.x.cols();
  const std::size_t element = bytes_of(o.x.dtype), narrow = static_cast<std::size_t>(cols) * element,
                    wide_row = static_cast<std::size_t>(whole) * element;
  const auto multiply = MINDPIPE_PICK_KERNELS(isa_, elementwise_kernels).multiply[dtype_index(o.x.dtype)];
  const auto *x = o.x.as<std::byte>(), *factor = o.factor.as<std::byte>();
  auto* y = o.y.as<std::byte>();
  in_ranges(threads_, o.x.rows(), row_grain(whole), [&](auto first, auto last) {
    for (std::int64_t n = first; n < last; ++n) {
      const std::size_t at = static_cast<std::size_t>(n) * wide_row;
      multiply(x + at, factor + static_cast<std::size_t>(n) * narrow, y + at, 0, cols);
      if (x != y) std::memcpy(y + at + narrow, x + at + narrow, wide_row - narrow);
    }
  });
}

}  // namespace mindpipe
