#include "cuda/device/row_team.h"
#include "cuda/device/span_table.h"
#include "cuda/error.h"
#include "cuda/gpu_operations.h"
#include "operations/element_hash.h"
#include "operations/updates.h"

namespace mindpipe::cuda {
namespace {

/// sum x^2 over a chunk of a range, one block for each: a thread takes every 256th group, its lanes apart,
/// then all are joined by neighbours. A range's sums stand one after the other from its place on.
template <class T>
__global__ void __launch_bounds__(group_threads)
    sum_squares_chunks(const T* x, int64_t chunk, double* sums,
                       const __grid_constant__ SpanTable<int64_t> table) {
  using A = Wide<T>;
  constexpr int size = lanes<T>;
  __shared__ A of_warps[most_warps];
  const auto [span, block] = span_of_block(table);
  const int64_t begin = block * chunk, left = table.count[span] - begin, here = left < chunk ? left : chunk;
  Group<A, size> total{};
  for_groups_of_block<group_threads, size>(x + table.first[span] + begin, here, table.wide[span],
                                           [&](int64_t, const Group<A, size>& a, auto) {
#pragma unroll
                                             for (int k = 0; k < size; ++k)
                                               total.x[k] = multiply_add(a.x[k], a.x[k], total.x[k]);
                                           });
  const A sum = join_team(sum_of(total), group_threads, of_warps, Sum{});
  if (threadIdx.x == 0) sums[table.of[span] + block] = sum;
}

/// Whole numbers may be added in any order, so here an atomic addition has the same bits as any other.
template <class T>
__global__ void __launch_bounds__(group_threads)
    count_groups(const T* x, int64_t count, unsigned long long* found, bool wide) {
  constexpr int size = lanes<T>;
  __shared__ int64_t of_warps[most_warps];
  int64_t here = 0;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * group_threads * size;
  for (int64_t i = thread_index() * size; i < count; i += stride) {
    const auto a = wide && count - i >= size
                       ? load<size>(x + i, Whole{})
                       : load<size>(x + i, Some{static_cast<int>(count - i < size ? count - i : size)});
#pragma unroll
    for (int k = 0; k < size; ++k) here += not_finite(a.x[k]) ? 1 : 0;
  }
  here = join_team(here, group_threads, of_warps, Sum{});
  if (threadIdx.x == 0 && here != 0) atomicAdd(found, static_cast<unsigned long long>(here));
}

/// Adds modulo 2^64.
struct SumOfWords {
  __device__ int64_t operator()(int64_t a, int64_t b) const {
    return static_cast<int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  }
};

/// The sum of element_hash over a tensor. Whole numbers may be added in any order.
template <class T>
__global__ void __launch_bounds__(group_threads)
    hash_groups(const T* x, int64_t count, unsigned long long* sum, bool wide) {
  constexpr int size = lanes<T>;
  __shared__ int64_t of_warps[most_warps];
  std::uint64_t here = 0;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * group_threads * size;
  for (int64_t i = thread_index() * size; i < count; i += stride) {
    const int some = static_cast<int>(count - i < size ? count - i : size);
    const auto a = wide && some == size ? load<size>(x + i, Whole{}) : load<size>(x + i, Some{some});
#pragma unroll
    for (int k = 0; k < size; ++k)
      if (k < some) here += element_hash(static_cast<std::uint64_t>(i + k), word_of(a.x[k]));
  }
  const int64_t all = join_team(static_cast<int64_t>(here), group_threads, of_warps, SumOfWords{});
  if (threadIdx.x == 0) atomicAdd(sum, static_cast<unsigned long long>(all));
}

/// totals[s] = x[begin] + ... + x[end - 1], a block for each span: a thread takes every 256th number, then
/// all are joined by neighbours. The span's length alone decides the order.
template <class T>
__global__ void __launch_bounds__(group_threads)
    span_sums(const T* x, const std::int32_t* spans, double* totals) {
  __shared__ double of_warps[most_warps];
  const int64_t begin = spans[2 * blockIdx.x], end = spans[2 * blockIdx.x + 1];
  double total = 0;
#pragma unroll 4
  for (int64_t i = begin + threadIdx.x; i < end; i += group_threads) total += static_cast<double>(x[i]);
  total = join_team(total, group_threads, of_warps, Sum{});
  if (threadIdx.x == 0) totals[blockIdx.x] = total;
}

__global__ void clip_and_scale_alone(StepRule rule, const double* sums, double* decision) {
  if (threadIdx.x == 0) clip_and_scale_step(rule, sums[0], sums[1], decision);
}

/// What a rule's numbers are in the dtype of the masters.
template <class A>
struct AdamWIn {
  A beta1, beta2, one_less_beta1, one_less_beta2, epsilon;
  double rate;
};

/// p *= 1 - rate decay; m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2; p -= rate / (1 - b1^t) m / (sqrt(v) /
/// sqrt(1 - b2^t) + epsilon); of a range: 1 - rate decay
template <class T>
__global__ void __launch_bounds__(group_threads)
    adamw_groups(AdamWIn<Wide<T>> step, const double* decision, const Wide<T>* gradient, Wide<T>* master,
                 Wide<T>* m, Wide<T>* v, T* value, const __grid_constant__ SpanTable<Wide<T>> table) {
  using A = Wide<T>;
  constexpr int size = lanes<A>;
  if (decision[Decision::skipped] != 0) return;
  const SpanBlock here = span_of_block(table);
  const A keep = table.of[here.span];
  const A factor = static_cast<A>(decision[Decision::gradient_factor]),
          step_size = static_cast<A>(step.rate / decision[Decision::first_correction]),
          deviation_factor = static_cast<A>(decision[Decision::second_correction]);
  for_group_of_span<size>(table, here, [&](int64_t i, auto ending) {
    const auto g = load<size>(gradient + i, ending);
    auto p = load<size>(master + i, ending), first = load<size>(m + i, ending),
         second = load<size>(v + i, ending);
#pragma unroll
    for (int k = 0; k < size; ++k) {
      const A slope = g.x[k] * factor;
      first.x[k] = step.beta1 * first.x[k] + step.one_less_beta1 * slope;
      second.x[k] = step.beta2 * second.x[k] + step.one_less_beta2 * slope * slope;
      p.x[k] = p.x[k] * keep -
               step_size * (first.x[k] / (square_root(second.x[k]) * deviation_factor + step.epsilon));
    }
    store(m + i, first, ending);
    store(v + i, second, ending);
    store(master + i, p, ending);
    if (value != nullptr) store(value + i, p, ending);
  });
}

template <class A>
struct SgdIn {
  A rate, momentum, of_gradient, of_velocity;
};

/// g += decay p; v = momentum v + g; p -= rate v, or with nesterov: p -= rate (g + momentum v); of a range:
/// its decay
template <class T>
__global__ void __launch_bounds__(group_threads)
    sgd_groups(SgdIn<Wide<T>> step, const double* decision, const Wide<T>* gradient, Wide<T>* master,
               Wide<T>* velocity, T* value, const __grid_constant__ SpanTable<Wide<T>> table) {
  using A = Wide<T>;
  constexpr int size = lanes<A>;
  if (decision[Decision::skipped] != 0) return;
  const SpanBlock here = span_of_block(table);
  const A decay = table.of[here.span];
  const A factor = static_cast<A>(decision[Decision::gradient_factor]);
  for_group_of_span<size>(table, here, [&](int64_t i, auto ending) {
    auto change = load<size>(gradient + i, ending), p = load<size>(master + i, ending);
#pragma unroll
    for (int k = 0; k < size; ++k) change.x[k] = change.x[k] * factor + decay * p.x[k];
    if (velocity != nullptr) {
      auto moved = load<size>(velocity + i, ending);
#pragma unroll
      for (int k = 0; k < size; ++k) {
        moved.x[k] = step.momentum * moved.x[k] + change.x[k];
        change.x[k] = step.of_gradient * change.x[k] + step.of_velocity * moved.x[k];
      }
      store(velocity + i, moved, ending);
    }
#pragma unroll
    for (int k = 0; k < size; ++k) p.x[k] = p.x[k] - step.rate * change.x[k];
    store(master + i, p, ending);
    if (value != nullptr) store(value + i, p, ending);
  });
}

/// Whether wide accesses may begin at an element of what an update moves; none is a null pointer's answer.
template <class T, class... Masters>
auto aligned_at(const Tensor& value, const Masters&... masters) {
  const auto from = [](const Tensor& of, int64_t first, auto number) {
    return of ? static_cast<const decltype(number)*>(of.data) + first : nullptr;
  };
  return [=](int64_t first) { return aligned(from(value, first, T{}), from(masters, first, Wide<T>{})...); };
}

constexpr int64_t most_counting_blocks = 2048;  ///< enough to fill a GPU; each walks on from there

}  // namespace
}  // namespace mindpipe::cuda

namespace mindpipe {

using namespace cuda;

void GpuOperations::run(const SumSquaresOperands& o) {
  run(SumSquaresOfSpansOperands{o.x, o.sums, {{{0, o.x.count()}, 0}}});
}

void GpuOperations::run(const SumSquaresOfSpansOperands& o) {
  with_number(dtype_index(o.x.dtype), [&]<class T>(T) {
    in_tables<int64_t>(
        o.spans, statistics_chunk, [](const SquaresSpan& span) { return span.first_sum; },
        [&](int64_t first) { return aligned(o.x.as<T>() + first); },
        [&](int64_t blocks, const auto& table) {
          launch(stream(), Grid{blocks, group_threads}, sum_squares_chunks<T>, o.x.data, statistics_chunk,
                 o.sums.data, table);
        });
  });
}

std::int64_t GpuOperations::count_not_finite(const Tensor& x) {
  auto* found = static_cast<unsigned long long*>(workspace(sizeof(unsigned long long), "count_not_finite"));
  MP_CUDA(cudaMemsetAsync(found, 0, sizeof *found, stream()));
  with_number(dtype_index(x.dtype), [&]<class T>(T) {
    Grid grid = grid_of_groups(x.count(), lanes<T>);
    grid.x = grid.x < most_counting_blocks ? grid.x : most_counting_blocks;
    launch(stream(), grid, count_groups<T>, x.data, x.count(), found, aligned(x.data));
  });
  unsigned long long answer = 0;
  staging_.download(found, &answer, sizeof answer, stream());
  done("count_not_finite");
  return static_cast<std::int64_t>(answer);
}

std::uint64_t GpuOperations::hash(const Tensor& x) {
  auto* sum = static_cast<unsigned long long*>(workspace(sizeof(unsigned long long), "hash"));
  MP_CUDA(cudaMemsetAsync(sum, 0, sizeof *sum, stream()));
  with_number(dtype_index(x.dtype), [&]<class T>(T) {
    Grid grid = grid_of_groups(x.count(), lanes<T>);
    grid.x = grid.x < most_counting_blocks ? grid.x : most_counting_blocks;
    launch(stream(), grid, hash_groups<T>, x.data, x.count(), sum, aligned(x.data));
  });
  unsigned long long answer = 0;
  staging_.download(sum, &answer, sizeof answer, stream());
  done("hash");
  return answer;
}

void GpuOperations::run(const SumSpansOperands& o) {
  const Grid grid{o.totals.count(), group_threads};
  const auto kernel = [&](auto sum) { launch(stream(), grid, sum, o.x.data, o.spans.data, o.totals.data); };
  if (o.x.dtype == DType::f64) kernel(span_sums<double>);
  else kernel(span_sums<float>);
}

void GpuOperations::run(const ClipAndScaleOperands& o) {
  launch(stream(), Grid{1, 32}, clip_and_scale_alone, o.rule, o.sums.as<double>(), o.decision.as<double>());
}

void GpuOperations::run(const AdamWOperands& o) {
  run(AdamWOfSpansOperands{o, {{{0, o.master.count()}, o.rule.decay}}});
}

void GpuOperations::run(const AdamWOfSpansOperands& o) {
  const AdamWOperands& all = o.all;
  const AdamWStep step = all.step();
  with_number(o.checked(), [&]<class T>(T) {
    using A = Wide<T>;
    const AdamWIn<A> in{static_cast<A>(step.beta1),          static_cast<A>(step.beta2),
                        static_cast<A>(step.one_less_beta1), static_cast<A>(step.one_less_beta2),
                        static_cast<A>(step.epsilon),        step.rate};
    in_tables<A>(
        o.spans, group_threads * lanes<A>,
        [&](const UpdateSpan& span) { return static_cast<A>(o.of(span).step().keep); },
        aligned_at<T>(all.value, all.gradient, all.master, all.m, all.v),
        [&](int64_t blocks, const auto& table) {
          launch(stream(), Grid{blocks, group_threads}, adamw_groups<T>, in, all.decision.data,
                 all.gradient.data, all.master.data, all.m.data, all.v.data, all.value.data, table);
        });
  });
}

void GpuOperations::run(const SgdOperands& o) {
  run(SgdOfSpansOperands{o, {{{0, o.master.count()}, o.rule.decay}}});
}

void GpuOperations::run(const SgdOfSpansOperands& o) {
  const SgdOperands& all = o.all;
  const SgdStep step = all.step();
  with_number(o.checked(), [&]<class T>(T) {
    using A = Wide<T>;
    const SgdIn<A> in{static_cast<A>(step.rate), static_cast<A>(step.momentum), step.nesterov ? A(1) : A(0),
                      step.nesterov ? static_cast<A>(step.momentum) : A(1)};
    in_tables<A>(
        o.spans, group_threads * lanes<A>, [](const UpdateSpan& span) { return static_cast<A>(span.decay); },
        aligned_at<T>(all.value, all.gradient, all.master, all.velocity),
        [&](int64_t blocks, const auto& table) {
          launch(stream(), Grid{blocks, group_threads}, sgd_groups<T>, in, all.decision.data,
                 all.gradient.data, all.master.data, all.velocity.data, all.value.data, table);
        });
  });
}

}  // namespace mindpipe
