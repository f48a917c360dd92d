#include "cpu/simd/elementwise_kernels.h"

#include <cstring>

#include "cpu/activation_f64.h"
#include "cpu/cpu_backend.h"
#include "cpu/parallel.h"
#include "cpu/simd/integer_kernels.h"
#include "operations/elementwise.h"

namespace mindpipe {

namespace {

using AddKernel = void (*)(const void* a, const void* b, void* sum, std::int64_t first, std::int64_t last);

AddKernel add_kernel(Isa isa, DType dtype) {
  return dtype == DType::i64 ? MINDPIPE_PICK_KERNELS(isa, integer_kernels).add
                             : MINDPIPE_PICK_KERNELS(isa, elementwise_kernels).add[dtype_index(dtype)];
}

/// Adds up a block of each term of a tree. Sums between stay in the nearest cache, so memory is read once for
/// each term and written once.
class BlockOfTree {
 public:
  static constexpr std::int64_t bytes = 4096;
  BlockOfTree(const AddTreeOperands& operands, AddKernel add) : operands_(operands), add_(add) {}

  /// Elements [first, first + count) of the sum, at most `bytes`.
  void add_up(std::int64_t first, std::int64_t count) {
    const void* open[AddTreeOperands::most_open];
    const auto at = static_cast<std::int64_t>(bytes_of(operands_.sum.dtype)) * first;
    int top = -1;
    std::size_t joined = 0;
    for (std::size_t term = 0; term < operands_.terms.size(); ++term) {
      open[++top] = operands_.terms[term].as<std::byte>() + at;
      for (int i = 0; i < operands_.joins[term]; ++i, --top) {
        const bool is_root = ++joined + 1 == operands_.terms.size();
        void* to = is_root ? operands_.sum.as<std::byte>() + at : between_[top - 1];
        add_(open[top - 1], open[top], to, 0, count);
        open[top - 1] = to;
      }
    }
  }

 private:
  const AddTreeOperands& operands_;
  AddKernel add_;
  alignas(64) std::byte between_[AddTreeOperands::most_open][bytes];
};

}  // namespace

void CpuBackend::run(const AddOperands& o) {
  const AddKernel kernel = add_kernel(isa_, o.a.dtype);
  in_ranges(threads_, o.a.count(), element_grain,
            [&](auto first, auto last) { kernel(o.a.data, o.b.data, o.sum.data, first, last); });
}

void CpuBackend::run(const AddTreeOperands& o) {
  if (o.terms.size() == 1 && o.terms[0].data != o.sum.data) return copy(o.terms[0], o.sum);
  const AddKernel kernel = add_kernel(isa_, o.sum.dtype);
  const std::int64_t each = BlockOfTree::bytes / static_cast<std::int64_t>(bytes_of(o.sum.dtype));
  in_ranges(threads_, o.sum.count(), element_grain, [&](std::int64_t first, std::int64_t last) {
    BlockOfTree block(o, kernel);
    for (; first < last; first += each) block.add_up(first, std::min(each, last - first));
  });
}

void CpuBackend::run(const MaximumOperands& o) {
  const auto pick = [&](auto number) {
    using T = decltype(number);
    const T *x = o.a.as<T>(), *y = o.b.as<T>();
    T* out = o.largest.as<T>();
    in_ranges(threads_, o.a.count(), element_grain, [=](auto first, auto last) {
      for (std::int64_t i = first; i < last; ++i) out[i] = x[i] > y[i] || x[i] != x[i] ? x[i] : y[i];
    });
  };
  if (o.a.dtype == DType::f32) pick(0.0f);
  else pick(0.0);
}

void CpuBackend::run(const AccumulateOperands& o) {
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, elementwise_kernels).accumulate[dtype_index(o.part.dtype)];
  in_ranges(threads_, o.part.count(), element_grain,
            [&](auto first, auto last) { kernel(o.part.data, o.total.data, first, last); });
}

void CpuBackend::run(const ConvertOperands& o) {
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, elementwise_kernels)
                          .convert[dtype_index(o.x.dtype)][dtype_index(o.y.dtype)];
  in_ranges(threads_, o.x.count(), element_grain,
            [&](auto first, auto last) { kernel(o.x.data, o.y.data, first, last); });
}

void CpuBackend::run(const SwigluOperands& o) {
  const std::int64_t rows = o.y.rows(), cols = o.y.cols();
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, elementwise_kernels).swiglu[dtype_index(o.y.dtype)];
  in_ranges(threads_, rows, row_grain(cols),
            [&](auto first, auto last) { kernel(o.gate_up.data, o.y.data, cols, first, last); });
}

void CpuBackend::run(const SwigluBackwardOperands& o) {
  const std::int64_t rows = o.dy.rows(), cols = o.dy.cols();
  const auto kernel =
      MINDPIPE_PICK_KERNELS(isa_, elementwise_kernels).swiglu_backward[dtype_index(o.dy.dtype)];
  in_ranges(threads_, rows, row_grain(cols), [&](auto first, auto last) {
    kernel(o.dy.data, o.gate_up.data, o.dgate_up.data, cols, first, last);
  });
}

void CpuBackend::run(const ActivationBackwardOperands& o) {
  if (o.dy.dtype == DType::f64) {
    const double *dy = o.dy.as<double>(), *before = o.before.as<double>();
    for (std::int64_t i = 0; i < o.dy.count(); ++i)
      o.dx.as<double>()[i] = dy[i] * f64::derivative(o.activation, before[i]);
    return;
  }
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, elementwise_kernels)
                          .activation_backward[dtype_index(o.dy.dtype) - dtype_index(DType::f32)];
  in_ranges(threads_, o.dy.count(), element_grain, [&](auto first, auto last) {
    kernel(o.activation, o.dy.data, o.before.data, o.dx.data, first, last);
  });
}

void CpuBackend::run(const ScaleOperands& o) {
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, elementwise_kernels).scale[dtype_index(o.x.dtype)];
  in_ranges(threads_, o.x.count(), element_grain,
            [&](auto first, auto last) { kernel(o.x.data, o.factor, o.y.data, first, last); });
}

void CpuBackend::run(const DropoutOperands& o) {
  const MaskRows mask = o.checked();
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, elementwise_kernels).dropout[dtype_index(o.x.dtype)];
  if (mask.threshold != 0)
    in_ranges(threads_, o.x.rows(), row_grain(mask.cols),
              [&](auto first, auto last) { kernel(o.x.data, mask, o.y.data, first, last); });
  else if (o.x.data != o.y.data) std::memcpy(o.y.data, o.x.data, o.x.bytes());
}

void CpuBackend::run(const FillOperands& o) {
  const auto fill_as = [&](auto number) {
    auto* p = static_cast<decltype(number)*>(o.x.data);
    in_ranges(threads_, o.x.count(), element_grain,
              [=](auto first, auto last) { std::fill(p + first, p + last, number); });
  };
  switch (o.x.dtype) {
    case DType::f64:
      fill_as(o.value);
      break;
    case DType::f32:
      fill_as(static_cast<float>(o.value));
      break;
    case DType::i32:
      fill_as(static_cast<std::int32_t>(o.value));
      break;
    case DType::u8:
      fill_as(static_cast<std::uint8_t>(o.value));
      break;
    case DType::i64:
      fill_as(static_cast<std::int64_t>(o.value));
      break;
    case DType::bf16: {
      std::uint16_t bits = 0;
      MINDPIPE_PICK_KERNELS(isa_, elementwise_kernels)
          .convert[dtype_index(DType::f64)][dtype_index(DType::bf16)](&o.value, &bits, 0, 1);
      fill_as(bits);
      break;
    }
  }
}

void CpuBackend::run(const FillOfSpansOperands& o) { run_in_turn(o); }

}  // namespace mindpipe
