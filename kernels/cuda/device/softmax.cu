#include "cuda/device/block_memory.h"
#include "cuda/device/classifier_kernels.h"
#include "cuda/device/row_team.h"

/// Losses, and the gradient of logits whose row is whole, by a block a row: thread t takes groups t, t
/// + 1024, ... of it, lanes apart, then all are joined by neighbours. The formulas as plain loops:
/// `cross_entropy` in tests/kernels/reference.h.
namespace mindpipe::cuda {
namespace {

constexpr int softmax_threads = 1024, softmax_warps = softmax_threads / 32;

/// A maximum `a`, and a sum `b` of exponentials of what is that much smaller. The sum of none is 0.
template <class A>
struct Joined {
  __device__ Pair<A> operator()(Pair<A> x, Pair<A> y) const {
    if (x.b == 0) return y;
    if (y.b == 0) return x;
    const A top = Largest{}(x.a, y.a);
    return {top, x.b * exponential(x.a - top) + y.b * exponential(y.a - top)};
  }
};

template <class From>
struct RowSums {
  From maximum, sum, total;
};

/// A group in the block's memory, of which only its own thread knows.
template <class A, int size>
__device__ inline void hold(A* to, const Group<A, size>& group) {
  alignas(16) A raw[size];
#pragma unroll
  for (int k = 0; k < size; ++k) raw[k] = group.x[k];
  move<size>(raw, to, Whole{});
}

/// The row's sums while it is copied into the block's memory, which then holds exp(x - maximum).
template <class From>
__device__ inline RowSums<From> sums_of_held(const From* row, int64_t valid, bool wide, From* held) {
  constexpr int size = lanes<From>;
  __shared__ From largest_of[softmax_warps];
  __shared__ Pair<From> sums_of[softmax_warps];
  const Largest largest{};
  From most = -static_cast<From>(INFINITY);
  Group<From, size> plain{}, exponentials{};
  for_groups_of_block<softmax_threads, size>(row, valid, wide,
                                             [&](int64_t j, const Group<From, size>& x, auto ending) {
#pragma unroll
                                               for (int k = 0; k < size; ++k) {
                                                 if (there(ending, k)) most = largest(most, x.x[k]);
                                                 plain.x[k] += x.x[k];  // zero beyond the row's end
                                               }
                                               hold(held + j, x);
                                             });
  const From top = join_team(most, softmax_threads, largest_of, largest);
  for (int64_t j = static_cast<int64_t>(threadIdx.x) * size; j < valid; j += softmax_threads * size) {
    auto e = load<size>(held + j, Whole{});
#pragma unroll
    for (int k = 0; k < size; ++k) {
      e.x[k] = j + k < valid ? exponential(e.x[k] - top) : From(0);
      exponentials.x[k] += e.x[k];
    }
    hold(held + j, e);
  }
  const Pair<From> both =
      join_team(Pair<From>{sum_of(exponentials), sum_of(plain)}, softmax_threads, sums_of, Sum{});
  return {top, both.a, both.b};
}

/// The row's sums in one walk: each thread adds up below the largest that it has met.
template <class From>
__device__ inline RowSums<From> sums_of_read(const From* row, int64_t valid, bool wide) {
  constexpr int size = lanes<From>;
  __shared__ Pair<From> running_of[softmax_warps];
  __shared__ From plain_of[softmax_warps];
  Pair<From> running{-static_cast<From>(INFINITY), 0};
  Group<From, size> plain{};
  for_groups_of_block<softmax_threads, size>(row, valid, wide,
                                             [&](int64_t, const Group<From, size>& x, auto ending) {
                                               From most = x.x[0];
#pragma unroll
                                               for (int k = 1; k < size; ++k)
                                                 if (there(ending, k)) most = Largest{}(most, x.x[k]);
                                               if (most > running.a)
                                                 running = {most, running.b * exponential(running.a - most)};
#pragma unroll
                                               for (int k = 0; k < size; ++k) {
                                                 if (there(ending, k))
                                                   running.b += exponential(x.x[k] - running.a);
                                                 plain.x[k] += x.x[k];
                                               }
                                             });
  running = join_team(running, softmax_threads, running_of, Joined<From>{});
  const From total = join_team(sum_of(plain), softmax_threads, plain_of, Sum{});
  return {running.a, running.b, total};
}

/// A row may be overwritten by its own gradient: a thread writes only what it alone has read, and the
/// target's logit is read before anything is written.
template <class To, bool held>
__global__ void __launch_bounds__(softmax_threads, 1)
    cross_entropy_rows(SoftmaxCall call, Wide<To>* losses, To* dlogits, bool wide) {
  using From = Wide<To>;
  constexpr int size = lanes<From>;
  const int64_t n = blockIdx.x, cols = call.cols;
  const From* row = static_cast<const From*>(call.logits) + n * cols;
  To* out = dlogits + n * cols;
  const std::int32_t target = call.targets[n];
  const int64_t valid = target < 0 ? 0 : call.valid,
                column = target >= 0 && target < call.valid ? target : -1;
  const From of_target = threadIdx.x == 0 && column >= 0 ? row[column] : From(0);
  [[maybe_unused]] From* kept = nullptr;
  RowSums<From> sums;
  if constexpr (held) {
    kept = block_memory<From>();
    sums = sums_of_held(row, valid, wide, kept);
  } else {
    sums = sums_of_read(row, valid, wide);
  }
  if (threadIdx.x == 0) {
    const double loss = static_cast<double>(sums.maximum) + log(static_cast<double>(sums.sum)) -
                        call.of_logit * static_cast<double>(of_target) -
                        call.uniform * static_cast<double>(sums.total);
    losses[n] = target < 0 ? From(0) : static_cast<From>(loss);
  }
  const From less = static_cast<From>(call.less), less_at_target = static_cast<From>(call.less_at_target),
             scale = static_cast<From>(call.factor / static_cast<double>(sums.sum));
  const auto put_gradient = [&](int64_t j, const Group<From, size>& e, auto ending) {
    Group<From, size> d{};
#pragma unroll
    for (int k = 0; k < size; ++k) {
      if (j + k < valid) d.x[k] = e.x[k] * scale - less;
      if (j + k == column) d.x[k] -= less_at_target;
    }
    store(out + j, d, ending);
  };
  if constexpr (held) {
    for (int64_t j = static_cast<int64_t>(threadIdx.x) * size; j < cols; j += softmax_threads * size) {
      const auto e = j < valid ? load<size>(kept + j, Whole{}) : Group<From, size>{};
      if (wide) put_gradient(j, e, Whole{});
      else put_gradient(j, e, Some{static_cast<int>(cols - j < size ? cols - j : size)});
    }
  } else {
    for_groups_of_block<softmax_threads, size>(row, cols, wide,
                                               [&](int64_t j, const Group<From, size>& x, auto ending) {
                                                 Group<From, size> e;
#pragma unroll
                                                 for (int k = 0; k < size; ++k)
                                                   e.x[k] = exponential(x.x[k] - sums.maximum);
                                                 put_gradient(j, e, ending);
                                               });
  }
}

}  // namespace

void softmax_cross_entropy(int type, const SoftmaxCall& call, void* losses, void* dlogits, int64_t rows,
                           std::size_t most_shared, cudaStream_t stream) {
  with_number(type, [&]<class To>(To) {
    using From = Wide<To>;
    const bool wide = aligned(call.logits, dlogits) && whole_rows<From>(call.cols);
    Grid grid{rows, softmax_threads};
    const std::size_t bytes = static_cast<std::size_t>(blocks_for(call.cols, lanes<From>)) * 16;
    if (bytes > most_shared) {
      launch(stream, grid, cross_entropy_rows<To, false>, call, losses, dlogits, wide);
    } else {
      grid.shared_bytes = bytes;
      cudaFuncSetAttribute(cross_entropy_rows<To, true>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           static_cast<int>(bytes));
      launch(stream, grid, cross_entropy_rows<To, true>, call, losses, dlogits, wide);
    }
  });
}

}  // namespace mindpipe::cuda
