#include "cuda/device/classifier_kernels.h"

#include "cuda/device/row_team.h"

/// A block takes a row of logits: thread t takes groups t, t + 512, ... of it, lanes apart, then all are
/// joined by neighbours. The row's length alone decides the order. The formulas as plain
/// loops: `cross_entropy` in tests/kernels/reference.h.
namespace mindpipe::cuda {
namespace {

constexpr int row_threads = most_threads;

/// The target's column in this shard, or -1.
__device__ inline int64_t column_of(std::int32_t target, const LogitShard& shard) {
  const int64_t column = target - shard.first_column;
  return target >= 0 && column >= 0 && column < shard.valid ? column : -1;
}

template <class T>
__global__ void __launch_bounds__(row_threads)
    maximum_rows(const T* logits, LogitShard shard, T* maximum, bool wide) {
  constexpr int size = lanes<T>;
  __shared__ T of_warps[most_warps];
  const int64_t n = blockIdx.x;
  const T* row = logits + n * shard.cols;
  const Largest largest{};
  T most = -static_cast<T>(INFINITY);
  for_groups_of_block<row_threads, size>(row, shard.valid, wide,
                                         [&](int64_t, const Group<T, size>& x, auto ending) {
#pragma unroll
                                           for (int k = 0; k < size; ++k)
                                             if (there(ending, k)) most = largest(most, x.x[k]);
                                         });
  most = join_team(most, row_threads, of_warps, largest);
  if (threadIdx.x == 0) maximum[n] = most;
}

/// sums = sum exp(x - maximum), total = sum x, of_target = x[target]
template <class T>
__global__ void __launch_bounds__(row_threads)
    sum_rows(const T* logits, LogitShard shard, const std::int32_t* targets, const T* maximum, T* sums,
             T* of_target, T* total, bool wide) {
  constexpr int size = lanes<T>;
  __shared__ Pair<T> of_warps[most_warps];
  const int64_t n = blockIdx.x;
  const T* row = logits + n * shard.cols;
  const T top = maximum[n];
  Group<T, size> exponentials{}, plain{};
  for_groups_of_block<row_threads, size>(row, shard.valid, wide,
                                         [&](int64_t, const Group<T, size>& x, auto ending) {
#pragma unroll
                                           for (int k = 0; k < size; ++k)
                                             if (there(ending, k)) {
                                               exponentials.x[k] += exponential(x.x[k] - top);
                                               plain.x[k] += x.x[k];
                                             }
                                         });
  const Pair<T> both = join_team(Pair<T>{sum_of(exponentials), sum_of(plain)}, row_threads, of_warps, Sum{});
  if (threadIdx.x != 0) return;
  const int64_t column = column_of(targets[n], shard);
  sums[n] = both.a;
  total[n] = both.b;
  of_target[n] = column < 0 ? T(0) : row[column];
}

/// ranks = words whose logit is larger than the target's, or equal before it in the vocabulary
template <class T>
__global__ void __launch_bounds__(row_threads)
    rank_rows(const T* logits, LogitShard shard, const std::int32_t* targets, const T* of_target, T* ranks,
              bool wide) {
  constexpr int size = lanes<T>;
  __shared__ T of_warps[most_warps];
  const int64_t n = blockIdx.x, column = targets[n] - shard.first_column;
  const T own = of_target[n];
  int before = 0;
  for_groups_of_block<row_threads, size>(
      logits + n * shard.cols, shard.valid, wide, [&](int64_t j, const Group<T, size>& x, auto ending) {
#pragma unroll
        for (int k = 0; k < size; ++k)
          if (there(ending, k) && (x.x[k] > own || (x.x[k] == own && j + k < column))) ++before;
      });
  const T rank = join_team(static_cast<T>(before), row_threads, of_warps, Sum{});
  if (threadIdx.x == 0) ranks[n] = rank;
}

/// One block; a warp takes a sample, its lanes the targets.
template <class T>
__global__ void __launch_bounds__(row_threads)
    add_hits(const std::int32_t* targets, const T* ranks, TargetList list, double* hits) {
  __shared__ Pair<int> of_targets[most_warps], of_samples[most_warps];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  Pair<int> found{0, 0}, whole{0, 0};  // right and within five; exact and all
  for (int64_t s = threadIdx.x / 32; s < list.samples; s += row_threads / 32) {
    Pair<int> counted{0, 0};  // all and right, of this sample
    for (int64_t i = s * list.each + lane; i < (s + 1) * list.each; i += 32) {
      if (targets[i] < 0) continue;
      counted = counted + Pair<int>{1, ranks[i] < 1};
      found = found + Pair<int>{ranks[i] < 1, ranks[i] < 5};
    }
    counted = join_warp(counted, Sum{});
    if (lane == 0 && counted.a > 0) whole = whole + Pair<int>{counted.a == counted.b, 1};
  }
  found = join_team(found, row_threads, of_targets, Sum{});
  whole = join_team(whole, row_threads, of_samples, Sum{});
  if (threadIdx.x != 0) return;
  hits[Hits::right] += static_cast<double>(found.a);
  hits[Hits::within_five] += static_cast<double>(found.b);
  hits[Hits::exact] += static_cast<double>(whole.a);
  hits[Hits::samples] += static_cast<double>(whole.b);
}

template <class T>
__global__ void loss_rows(LossCall call, T* losses, int64_t rows) {
  const int64_t n = thread_index();
  if (n >= rows) return;
  const auto at = [&](const void* numbers) { return static_cast<double>(static_cast<const T*>(numbers)[n]); };
  const double loss = at(call.maximum) + log(at(call.sums)) - call.of_logit * at(call.of_target) -
                      call.uniform * at(call.total);
  losses[n] = call.targets[n] < 0 ? T(0) : static_cast<T>(loss);
}

/// A row may be overwritten by its own gradient: a thread writes only what it alone has read.
template <class To>
__global__ void __launch_bounds__(row_threads)
    gradient_rows(LogitGradient call, LogitShard shard, To* dlogits, bool wide) {
  using From = Wide<To>;
  constexpr int size = lanes<From>;
  const int64_t n = blockIdx.x;
  const From* row = static_cast<const From*>(call.logits) + n * shard.cols;
  To* out = dlogits + n * shard.cols;
  const std::int32_t target = call.targets[n];
  const int64_t valid = target < 0 ? 0 : shard.valid, column = column_of(target, shard);
  const From top = static_cast<const From*>(call.maximum)[n], less = static_cast<From>(call.uniform),
             of_target = static_cast<From>(call.of_target),
             scale =
                 static_cast<From>(call.factor / static_cast<double>(static_cast<const From*>(call.sums)[n]));
  for_groups_of_block<row_threads, size>(row, shard.cols, wide,
                                         [&](int64_t j, const Group<From, size>& x, auto ending) {
                                           Group<From, size> d{};
#pragma unroll
                                           for (int k = 0; k < size; ++k) {
                                             if (j + k < valid)
                                               d.x[k] = exponential(x.x[k] - top) * scale - less;
                                             if (j + k == column) d.x[k] -= of_target;
                                           }
                                           store(out + j, d, ending);
                                         });
}

/// Calls work with a number of the logits' type.
template <class Work>
void with_logit(int type, const Work& work) {
  if (type == 0) work(double{});
  else work(float{});
}

}  // namespace

void row_maximum(int type, const void* logits, const LogitShard& shard, void* maximum, int64_t rows,
                 cudaStream_t stream) {
  with_logit(type, [&]<class T>(T) {
    launch(stream, Grid{rows, row_threads}, maximum_rows<T>, logits, shard, maximum,
           aligned(logits) && whole_rows<T>(shard.cols));
  });
}

void softmax_sums(int type, const void* logits, const LogitShard& shard, const std::int32_t* targets,
                  const void* maximum, void* sums, void* of_target, void* total, int64_t rows,
                  cudaStream_t stream) {
  with_logit(type, [&]<class T>(T) {
    launch(stream, Grid{rows, row_threads}, sum_rows<T>, logits, shard, targets, maximum, sums, of_target,
           total, aligned(logits) && whole_rows<T>(shard.cols));
  });
}

void target_rank(int type, const void* logits, const LogitShard& shard, const std::int32_t* targets,
                 const void* of_target, void* ranks, int64_t rows, cudaStream_t stream) {
  with_logit(type, [&]<class T>(T) {
    launch(stream, Grid{rows, row_threads}, rank_rows<T>, logits, shard, targets, of_target, ranks,
           aligned(logits) && whole_rows<T>(shard.cols));
  });
}

void count_hits(int type, const std::int32_t* targets, const void* ranks, const TargetList& list,
                double* hits, cudaStream_t stream) {
  with_logit(type, [&]<class T>(T) {
    launch(stream, Grid{1, row_threads}, add_hits<T>, targets, ranks, list, hits);
  });
}

void cross_entropy(int type, const LossCall& call, void* losses, int64_t rows, cudaStream_t stream) {
  with_logit(type,
             [&]<class T>(T) { launch(stream, grid_of_groups(rows, 1), loss_rows<T>, call, losses, rows); });
}

void cross_entropy_backward(int type, const LogitGradient& call, const LogitShard& shard, void* dlogits,
                            int64_t rows, cudaStream_t stream) {
  with_number(type, [&]<class To>(To) {
    launch(stream, Grid{rows, row_threads}, gradient_rows<To>, call, shard, dlogits,
           aligned(call.logits, dlogits) && whole_rows<Wide<To>>(shard.cols));
  });
}

}  // namespace mindpipe::cuda
