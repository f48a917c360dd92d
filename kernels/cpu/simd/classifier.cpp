#include "cpu/simd/classifier_kernels.h"

#include "cpu/simd/rows.h"

namespace mindpipe::MINDPIPE_ISA {
namespace {

using std::int64_t;

constexpr int64_t sum_chunk = 2048;  ///< columns that are added lane by lane before their sum joins the row's

/// The target's column in this shard, or -1.
inline int64_t column_of(std::int32_t target, const LogitShard& shard) {
  const int64_t column = target - shard.first_column;
  return target >= 0 && column >= 0 && column < shard.valid ? column : -1;
}

template <class T>
void row_maximum(const void* logits, const LogitShard& shard, void* maximum, int64_t first, int64_t last) {
  using V = Lanes<T>;
  const V lowest = all<V>(-__builtin_inf());
  for (int64_t n = first; n < last; ++n) {
    const T* row = static_cast<const T*>(logits) + n * shard.cols;
    V most = lowest;
    for_lanes<T>(shard.valid, [&](int64_t j, auto ending) {
      most = max(only(read(row + j, ending), lowest, ending), most);
    });
    static_cast<T*>(maximum)[n] = largest(most);
  }
}

/// sums = sum exp(x - maximum), total = sum x, of_target = x[target]
template <class T>
void softmax_sums(const void* logits, const LogitShard& shard, const std::int32_t* targets,
                  const void* maximum, void* sums, void* of_target, void* total, int64_t first,
                  int64_t last) {
  using V = Lanes<T>;
  const V nothing = all<V>(0);
  for (int64_t n = first; n < last; ++n) {
    const T* row = static_cast<const T*>(logits) + n * shard.cols;
    const V top = all<V>(static_cast<const T*>(maximum)[n]);
    T exponentials = 0, plain = 0;
    for (int64_t begin = 0; begin < shard.valid; begin += sum_chunk) {
      const int64_t count = shard.valid - begin < sum_chunk ? shard.valid - begin : sum_chunk;
      V e = nothing, p = nothing;
      for_lanes<T>(count, [&](int64_t j, auto ending) {
        const V x = read(row + begin + j, ending);
        e = e + only(exp_below_zero(x - top), nothing, ending);
        p = p + x;
      });
      exponentials += sum(e);
      plain += sum(p);
    }
    const int64_t column = column_of(targets[n], shard);
    static_cast<T*>(sums)[n] = exponentials;
    static_cast<T*>(total)[n] = plain;
    static_cast<T*>(of_target)[n] = column < 0 ? T(0) : row[column];
  }
}

/// ranks = words whose logit is larger than the target's, or equal before it in the vocabulary
template <class T>
void target_rank(const void* logits, const LogitShard& shard, const std::int32_t* targets,
                 const void* of_target, void* ranks, int64_t first, int64_t last) {
  for (int64_t n = first; n < last; ++n) {
    const T *row = static_cast<const T*>(logits) + n * shard.cols, own = static_cast<const T*>(of_target)[n];
    const int64_t column = targets[n] - shard.first_column, before = column < 0             ? 0
                                                                     : column < shard.valid ? column
                                                                                            : shard.valid;
    std::int32_t rank = 0;
    for (int64_t j = 0; j < before; ++j) rank += row[j] >= own ? 1 : 0;
    for (int64_t j = before; j < shard.valid; ++j) rank += row[j] > own ? 1 : 0;
    static_cast<T*>(ranks)[n] = static_cast<T>(rank);
  }
}

/// From is the logits' type, To the gradient's; a row may be overwritten by its own gradient.
template <class From, class To>
void backward(const void* logits, const LogitShard& shard, const std::int32_t* targets, const void* maximum,
              const void* sums, double factor, double uniform, double of_target, void* dlogits, int64_t first,
              int64_t last) {
  using V = Lanes<From>;
  const V less = all<V>(uniform), nothing = all<V>(0);
  for (int64_t n = first; n < last; ++n) {
    const From* row = static_cast<const From*>(logits) + n * shard.cols;
    To* out = static_cast<To*>(dlogits) + n * shard.cols;
    const int64_t valid = targets[n] < 0 ? 0 : shard.valid, column = column_of(targets[n], shard);
    const From logit_of_target = column < 0 ? From(0) : row[column];
    const V top = all<V>(static_cast<const From*>(maximum)[n]),
            scale = all<V>(factor / static_cast<const From*>(sums)[n]);
    for_lanes<From>(valid, [&](int64_t j, auto ending) {
      write(out + j, exp_below_zero(read(row + j, ending) - top) * scale - less, ending);
    });
    for_lanes<From>(shard.cols - valid,
                    [&](int64_t j, auto ending) { write(out + valid + j, nothing, ending); });
    if (column >= 0)
      write(out + column, exp_below_zero(all<V>(logit_of_target) - top) * scale - less - all<V>(of_target),
            Some{1});
  }
}

}  // namespace

const ClassifierKernels classifier_kernels = {
    {row_maximum<double>, row_maximum<float>},
    {softmax_sums<double>, softmax_sums<float>},
    {target_rank<double>, target_rank<float>},
    {backward<double, double>, backward<float, float>, backward<float, bf16>},
};

}  // namespace mindpipe::MINDPIPE_ISA
