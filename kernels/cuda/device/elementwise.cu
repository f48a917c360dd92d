#include <cstring>

#include "cuda/device/activation.h"
#include "cuda/device/residual.h"
#include "cuda/device/span_table.h"
#include "cuda/error.h"
#include "cuda/gpu_operations.h"
#include "operations/elementwise.h"

namespace mindpipe::cuda {
namespace {

template <class T>
__global__ void add_groups(const T* a, const T* b, T* sum, int64_t count, bool wide) {
  for_group<lanes<T>>(count, wide, [&](int64_t i, auto ending) {
    auto total = load<lanes<T>>(a + i, ending);
    const auto other = load<lanes<T>>(b + i, ending);
#pragma unroll
    for (int k = 0; k < lanes<T>; ++k) total.x[k] += other.x[k];
    store(sum + i, total, ending);
  });
}

/// Terms of a tree, and how many of the open sums join behind each.
template <class T>
struct TermsOfTree {
  const T* term[AddTreeOperands::most_terms];
  std::uint8_t joins[AddTreeOperands::most_terms];
  int count;
};

/// Puts a sum in front of the open ones, in registers: places are constants.
template <int most, class Sum>
__device__ inline void open_one(Sum (&open)[most], const Sum& sum) {
#pragma unroll
  for (int place = most - 1; place > 0; --place) open[place] = open[place - 1];
  open[0] = sum;
}
/// Joins the two in front. Each addition is rounded, as if it had gone through memory.
template <class T, int most, int size>
__device__ inline void join_two(Group<Wide<T>, size> (&open)[most]) {
#pragma unroll
  for (int k = 0; k < size; ++k) open[0].x[k] = rounded<T>(open[1].x[k] + open[0].x[k]);
#pragma unroll
  for (int place = 1; place + 1 < most; ++place) open[place] = open[place + 1];
}

/// `most`: sums that are open at a time.
template <int most, class T>
__global__ void add_tree_groups(const __grid_constant__ TermsOfTree<T> terms, T* sum, int64_t count,
                                bool wide) {
  for_group<lanes<T>>(count, wide, [&](int64_t i, auto ending) {
    Group<Wide<T>, lanes<T>> open[most]{};
    auto next = fetch<lanes<T>>(terms.term[0] + i, ending);
    for (int t = 0; t < terms.count; ++t) {
      open_one(open, widened(next));
      if (t + 1 < terms.count)
        next = fetch<lanes<T>>(terms.term[t + 1] + i, ending);  // under way beside additions
      for (int join = 0; join < terms.joins[t]; ++join) join_two<T>(open);
    }
    store(sum + i, open[0], ending);
  });
}

template <class T>
__global__ void maximum_groups(const T* a, const T* b, T* largest, int64_t count, bool wide) {
  for_group<lanes<T>>(count, wide, [&](int64_t i, auto ending) {
    auto one = load<lanes<T>>(a + i, ending);
    const auto other = load<lanes<T>>(b + i, ending);
#pragma unroll
    for (int k = 0; k < lanes<T>; ++k)
      one.x[k] = one.x[k] > other.x[k] || one.x[k] != one.x[k] ? one.x[k] : other.x[k];
    store(largest + i, one, ending);
  });
}

template <class T>
__global__ void accumulate_groups(const T* part, Wide<T>* total, int64_t count, bool wide) {
  constexpr int size = lanes<Wide<T>>;
  for_group<size>(count, wide, [&](int64_t i, auto ending) {
    auto sum = load<size>(total + i, ending);
    const auto more = load<size>(part + i, ending);
#pragma unroll
    for (int k = 0; k < size; ++k) sum.x[k] += more.x[k];
    store(total + i, sum, ending);
  });
}

template <class From, class To>
constexpr int convert_size = lanes<From> > lanes<To> ? lanes<From> : lanes<To>;

template <class From, class To>
__global__ void convert_groups(const From* x, To* y, int64_t count, bool wide) {
  constexpr int size = convert_size<From, To>;
  for_group<size>(count, wide,
                  [&](int64_t i, auto ending) { store(y + i, load<size>(x + i, ending), ending); });
}

template <class Bits>
__global__ void fill_groups(Bits bits, Bits* x, const __grid_constant__ SpanTable<Alone> table) {
  alignas(16) Bits raw[lanes<Bits>];
#pragma unroll
  for (int k = 0; k < lanes<Bits>; ++k) raw[k] = bits;
  for_group_of_span<lanes<Bits>>(table, span_of_block(table),
                                 [&](int64_t i, auto ending) { write<lanes<Bits>>(raw, x + i, ending); });
}

/// y = g / (1 + exp(-g)) u
template <class T>
__global__ void swiglu_groups(const T* gate_up, T* y, int64_t rows, int64_t cols, bool wide) {
  using A = Wide<T>;
  for_row_group<lanes<T>>(rows, cols, wide, [&](int64_t n, int64_t j, auto ending) {
    auto gate = load<lanes<T>>(gate_up + 2 * n * cols + j, ending);
    const auto up = load<lanes<T>>(gate_up + (2 * n + 1) * cols + j, ending);
#pragma unroll
    for (int k = 0; k < lanes<T>; ++k) gate.x[k] = gate.x[k] / (A(1) + exponential(-gate.x[k])) * up.x[k];
    store(y + n * cols + j, gate, ending);
  });
}

/// s = 1 / (1 + exp(-g)); dg = dy u s (1 + g (1 - s)), du = dy g s
template <class T>
__global__ void swiglu_backward_groups(const T* dy, const T* gate_up, T* dgate_up, int64_t rows, int64_t cols,
                                       bool wide) {
  using A = Wide<T>;
  for_row_group<lanes<T>>(rows, cols, wide, [&](int64_t n, int64_t j, auto ending) {
    const int64_t low = 2 * n * cols + j, high = low + cols;
    const auto d = load<lanes<T>>(dy + n * cols + j, ending);
    auto gate = load<lanes<T>>(gate_up + low, ending);
    auto up = load<lanes<T>>(gate_up + high, ending);
#pragma unroll
    for (int k = 0; k < lanes<T>; ++k) {
      const A g = gate.x[k], u = up.x[k], s = A(1) / (A(1) + exponential(-g));
      gate.x[k] = d.x[k] * u * s * multiply_add(g, A(1) - s, A(1));
      up.x[k] = d.x[k] * g * s;
    }
    store(dgate_up + low, gate, ending);
    store(dgate_up + high, up, ending);
  });
}

/// dx = dy activation'(before)
template <class T>
__global__ void activation_gradient_groups(Activation activation, const T* dy, const T* before, T* dx,
                                           int64_t count, bool wide) {
  for_group<lanes<T>>(count, wide, [&](int64_t i, auto ending) {
    auto d = load<lanes<T>>(dy + i, ending);
    const auto x = load<lanes<T>>(before + i, ending);
#pragma unroll
    for (int k = 0; k < lanes<T>; ++k) d.x[k] *= derivative_at(activation, x.x[k]);
    store(dx + i, d, ending);
  });
}

template <class T>
__global__ void scale_groups(const T* x, Wide<T> factor, T* y, int64_t count, bool wide) {
  for_group<lanes<T>>(count, wide, [&](int64_t i, auto ending) {
    auto scaled = load<lanes<T>>(x + i, ending);
#pragma unroll
    for (int k = 0; k < lanes<T>; ++k) scaled.x[k] *= factor;
    store(y + i, scaled, ending);
  });
}

template <class T>
__global__ void residual_groups(Residual<T> residual, int64_t rows, bool wide) {
  for_row_group<lanes<T>>(rows, residual.mask.cols, wide, [&](int64_t n, int64_t j, auto ending) {
    residual.sum_at(residual.template fetch_at<lanes<T>>(n, j, ending), n, j, ending);
  });
}

/// y = mask x / (1 - p)
template <class T>
__global__ void dropout_groups(const T* x, MaskRows mask, T* y, int64_t rows, bool wide) {
  using A = Wide<T>;
  for_row_group<lanes<T>>(rows, mask.cols, wide, [&](int64_t n, int64_t j, auto ending) {
    auto in = load<lanes<T>>(x + n * mask.cols + j, ending);
    const Kept<lanes<T>> mine = kept<lanes<T>>(mask, n, j);
#pragma unroll
    for (int k = 0; k < lanes<T>; ++k) in.x[k] = mine.keep[k] ? in.x[k] * static_cast<A>(mask.scale) : A(0);
    store(y + n * mask.cols + j, in, ending);
  });
}

template <class T>
std::uint64_t bits_of(T x) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &x, sizeof x);
  return bits;
}

/// The bits of one element with this value; bf16 rounds to the nearest, ties to even.
std::uint64_t element_bits(DType dtype, double value) {
  switch (dtype) {
    case DType::f64:
      return bits_of(value);
    case DType::f32:
      return bits_of(static_cast<float>(value));
    case DType::i32:
      return bits_of(static_cast<std::int32_t>(value));
    case DType::u8:
      return bits_of(static_cast<std::uint8_t>(value));
    case DType::i64:
      return bits_of(static_cast<std::int64_t>(value));
    case DType::bf16:
      break;
  }
  if (value != value) return 0x7fff;
  const std::uint64_t wide = bits_of(static_cast<float>(value));
  return (wide + 0x7fff + ((wide >> 16) & 1)) >> 16;
}

}  // namespace
}  // namespace mindpipe::cuda

namespace mindpipe {

using namespace cuda;

void GpuOperations::run(const AddOperands& o) {
  const auto with = [&]<class T>(T) {
    launch(stream(), grid_of_groups(o.a.count(), lanes<T>), add_groups<T>, o.a.data, o.b.data, o.sum.data,
           o.a.count(), aligned(o.a.data, o.b.data, o.sum.data));
  };
  if (o.a.dtype == DType::i64) with(int64_t{});
  else with_number(dtype_index(o.a.dtype), with);
}

void GpuOperations::run(const AddTreeOperands& o) {
  constexpr int few = 4;  // of up to eight terms
  const auto with = [&]<class T>(T) {
    TermsOfTree<T> terms{};
    terms.count = static_cast<int>(o.terms.size());
    bool wide = aligned(o.sum.data);
    for (std::size_t t = 0; t < o.terms.size(); ++t) {
      terms.term[t] = o.terms[t].as<T>();
      terms.joins[t] = o.joins[t];
      wide = wide && aligned(o.terms[t].data);
    }
    launch(stream(), grid_of_groups(o.sum.count(), lanes<T>),
           o.open() <= few ? add_tree_groups<few, T> : add_tree_groups<AddTreeOperands::most_open, T>, terms,
           o.sum.data, o.sum.count(), wide);
  };
  if (o.sum.dtype == DType::i64) with(int64_t{});
  else with_number(dtype_index(o.sum.dtype), with);
}

void GpuOperations::run(const MaximumOperands& o) {
  with_number(dtype_index(o.a.dtype), [&]<class T>(T) {
    launch(stream(), grid_of_groups(o.a.count(), lanes<T>), maximum_groups<T>, o.a.data, o.b.data,
           o.largest.data, o.a.count(), aligned(o.a.data, o.b.data, o.largest.data));
  });
}

void GpuOperations::run(const AccumulateOperands& o) {
  with_number(dtype_index(o.part.dtype), [&]<class T>(T) {
    launch(stream(), grid_of_groups(o.part.count(), lanes<Wide<T>>), accumulate_groups<T>, o.part.data,
           o.total.data, o.part.count(), aligned(o.part.data, o.total.data));
  });
}

void GpuOperations::run(const ConvertOperands& o) {
  with_number(dtype_index(o.x.dtype), [&]<class From>(From) {
    with_number(dtype_index(o.y.dtype), [&]<class To>(To) {
      launch(stream(), grid_of_groups(o.x.count(), convert_size<From, To>), convert_groups<From, To>,
             o.x.data, o.y.data, o.x.count(), aligned(o.x.data, o.y.data));
    });
  });
}

void GpuOperations::run(const FillOperands& o) { run(FillOfSpansOperands{o.x, o.value, {{0, o.x.count()}}}); }

void GpuOperations::run(const FillOfSpansOperands& o) {
  const std::uint64_t bits = element_bits(o.x.dtype, o.value);
  const auto with = [&]<class Bits>(Bits pattern) {
    in_tables<Alone>(
        o.spans, group_threads * lanes<Bits>, [](const FlatSpan&) { return Alone{}; },
        [&](int64_t first) { return aligned(o.x.as<Bits>() + first); },
        [&](int64_t blocks, const auto& table) {
          launch(stream(), Grid{blocks, group_threads}, fill_groups<Bits>, pattern, o.x.data, table);
        });
  };
  const std::size_t size = bytes_of(o.x.dtype);
  if (size == 1) with(static_cast<std::uint8_t>(bits));
  else if (size == 2) with(static_cast<std::uint16_t>(bits));
  else if (size == 4) with(static_cast<std::uint32_t>(bits));
  else with(bits);
}

void GpuOperations::run(const SwigluOperands& o) {
  const int64_t rows = o.y.rows(), cols = o.y.cols();
  with_number(dtype_index(o.y.dtype), [&]<class T>(T) {
    launch(stream(), grid_of_row_groups(rows, cols, lanes<T>), swiglu_groups<T>, o.gate_up.data, o.y.data,
           rows, cols, aligned(o.gate_up.data, o.y.data) && whole_rows<T>(cols));
  });
}

void GpuOperations::run(const SwigluBackwardOperands& o) {
  const int64_t rows = o.dy.rows(), cols = o.dy.cols();
  with_number(dtype_index(o.dy.dtype), [&]<class T>(T) {
    launch(stream(), grid_of_row_groups(rows, cols, lanes<T>), swiglu_backward_groups<T>, o.dy.data,
           o.gate_up.data, o.dgate_up.data, rows, cols,
           aligned(o.dy.data, o.gate_up.data, o.dgate_up.data) && whole_rows<T>(cols));
  });
}

void GpuOperations::run(const ActivationBackwardOperands& o) {
  with_number(dtype_index(o.dy.dtype), [&]<class T>(T) {
    launch(stream(), grid_of_groups(o.dy.count(), lanes<T>), activation_gradient_groups<T>, o.activation,
           o.dy.data, o.before.data, o.dx.data, o.dy.count(), aligned(o.dy.data, o.before.data, o.dx.data));
  });
}

void GpuOperations::run(const ScaleOperands& o) {
  with_number(dtype_index(o.x.dtype), [&]<class T>(T) {
    launch(stream(), grid_of_groups(o.x.count(), lanes<T>), scale_groups<T>, o.x.data,
           static_cast<Wide<T>>(o.factor), o.y.data, o.x.count(), aligned(o.x.data, o.y.data));
  });
}

void GpuOperations::run(const ResidualOperands& o) {
  const MaskRows mask = o.checked();
  with_number(dtype_index(o.x.dtype), [&]<class T>(T) {
    const Residual<T> sum{o.x.as<T>(), o.branch.as<T>(), o.bias.as<T>(), mask, o.y.as<T>()};
    launch(stream(), grid_of_row_groups(o.x.rows(), mask.cols, lanes<T>), residual_groups<T>, sum, o.x.rows(),
           aligned(o.x.data, o.branch.data, o.bias.data, o.y.data) && whole_rows<T>(mask.cols));
  });
}

void GpuOperations::run(const DropoutOperands& o) {
  const MaskRows mask = o.checked();
  if (mask.threshold == 0) {
    if (o.x.data != o.y.data)
      MP_CUDA(cudaMemcpyAsync(o.y.data, o.x.data, o.x.bytes(), cudaMemcpyDeviceToDevice, stream()));
    return;
  }
  with_number(dtype_index(o.x.dtype), [&]<class T>(T) {
    launch(stream(), grid_of_row_groups(o.x.rows(), mask.cols, lanes<T>), dropout_groups<T>, o.x.data, mask,
           o.y.data, o.x.rows(), aligned(o.x.data, o.y.data) && whole_rows<T>(mask.cols));
  });
}

}  // namespace mindpipe
