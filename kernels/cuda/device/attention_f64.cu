#include "cuda/device/attention_f64.h"

#include "cuda/device/flash_tile.h"
#include "cuda/device/number.h"
#include "cuda/launch.h"

namespace mindpipe::cuda {
namespace f64 {
namespace {

constexpr int block = 64;
Grid grid_of(std::int64_t rows) { return {blocks_for(rows, block), block}; }

/// The place of a thread among [samples, heads, rows].
struct Place {
  int sample, head, row;
  bool there;
};
__device__ inline Place place_of_thread(std::int64_t samples, std::int64_t heads, std::int64_t rows) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * block + threadIdx.x;
  return {static_cast<int>(i / rows / heads), static_cast<int>(i / rows % heads), static_cast<int>(i % rows),
          i < samples * heads * rows};
}

__device__ inline double* row_of(const HeadsView& view, const AttentionCall& call, int sample, int row,
                                 int head) {
  return flash::row_of<double>(view, call, sample, row, head);
}
__device__ inline double dot(const double* a, const double* b, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum = multiply_add(a[i], b[i], sum);
  return sum;
}
/// to += factor x
__device__ inline void add(double* to, double factor, const double* x, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = multiply_add(factor, x[i], to[i]);
}
__device__ inline void scale(double* x, double factor, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) x[i] *= factor;
}

/// D of one pair: 1 without dropout, else 0 or 1 / (1 - p).
__device__ inline double kept_factor(const AttentionCall& call, int sample, int head, int query, int key) {
  if (call.threshold == 0) return 1;
  const auto element =
      static_cast<std::uint64_t>(((call.head_offset + head) * call.queries + query) * call.keys + key);
  std::uint32_t words[4];
  flash::draw(call, static_cast<std::uint32_t>(sample), element / 4, words);
  return words[element % 4] >= call.threshold ? call.kept_scale : 0;
}
__device__ inline std::int64_t log_sum_at(const AttentionCall& call, int sample, int head, int query) {
  return (sample * call.query_heads + head) * call.queries + query;
}
__device__ inline double log_sum_of(const AttentionCall& call, int sample, int head, int query) {
  const std::int64_t at = log_sum_at(call, sample, head, query);
  return call.log_sum_is_f64 ? static_cast<const double*>(call.log_sum)[at]
                             : static_cast<const float*>(call.log_sum)[at];
}

/// out = sum of exp(s - max) D v / sum of exp(s - max), s = scale q k; log_sum = max + log(sum)
__global__ void forward_rows(AttentionCall call) {
  const Place at = place_of_thread(call.samples, call.query_heads, call.queries);
  if (!at.there) return;
  const int key_head = flash::key_head_of(call, at.head),
            seen = flash::visible_to(call, at.row, flash::length_of(call, at.sample));
  const double* q = row_of(call.q, call, at.sample, at.row, at.head);
  double* out = row_of(call.out, call, at.sample, at.row, at.head);
  const auto score = [&](int key) {
    return call.scale * dot(q, row_of(call.k, call, at.sample, key, key_head), call.width);
  };
  double highest = 0, sum = 0;
  for (int key = 0; key < seen; ++key) {
    const double s = score(key);
    highest = key == 0 || s > highest ? s : highest;
  }
  for (std::int64_t i = 0; i < call.width; ++i) out[i] = 0;
  for (int key = 0; key < seen; ++key) {
    const double p = exponential(score(key) - highest);
    sum += p;
    add(out, p * kept_factor(call, at.sample, at.head, at.row, key),
        row_of(call.v, call, at.sample, key, key_head), call.width);
  }
  if (seen > 0) scale(out, 1 / sum, call.width);
  const double log_sum = seen > 0 ? highest + log(sum) : 0;
  const std::int64_t to = log_sum_at(call, at.sample, at.head, at.row);
  if (call.log_sum_is_f64) static_cast<double*>(call.log_sum)[to] = log_sum;
  else static_cast<float*>(call.log_sum)[to] = static_cast<float>(log_sum);
}

/// p D and ds = p (dp D - dout . out) of one pair.
struct Pair {
  double weight, gradient;
};
__device__ inline Pair pair_of(const AttentionCall& call, int sample, int head, int query, int key) {
  const int key_head = flash::key_head_of(call, head);
  const double *q = row_of(call.q, call, sample, query, head),
               *dout = row_of(call.dout, call, sample, query, head);
  const double p = exponential(call.scale * dot(q, row_of(call.k, call, sample, key, key_head), call.width) -
                               log_sum_of(call, sample, head, query)),
               factor = kept_factor(call, sample, head, query, key);
  const double dp = dot(dout, row_of(call.v, call, sample, key, key_head), call.width) * factor;
  return {p * factor, p * (dp - dot(dout, row_of(call.out, call, sample, query, head), call.width))};
}

/// dq = scale ds k, keys in order
__global__ void query_rows(AttentionCall call) {
  const Place at = place_of_thread(call.samples, call.query_heads, call.queries);
  if (!at.there) return;
  const int key_head = flash::key_head_of(call, at.head),
            seen = flash::visible_to(call, at.row, flash::length_of(call, at.sample));
  double* dq = row_of(call.dq, call, at.sample, at.row, at.head);
  for (std::int64_t i = 0; i < call.width; ++i) dq[i] = 0;
  for (int key = 0; key < seen; ++key)
    add(dq, pair_of(call, at.sample, at.head, at.row, key).gradient,
        row_of(call.k, call, at.sample, key, key_head), call.width);
  scale(dq, call.scale, call.width);
}

/// dk = scale ds^T q, dv = (p D)^T dout, heads of the group in order, queries in order
__global__ void key_rows(AttentionCall call) {
  const Place at = place_of_thread(call.samples, call.key_heads, call.keys);
  if (!at.there) return;
  const int length = flash::length_of(call, at.sample),
            group = static_cast<int>(call.query_heads / call.key_heads);
  double *dk = row_of(call.dk, call, at.sample, at.row, at.head),
         *dv = row_of(call.dv, call, at.sample, at.row, at.head);
  for (std::int64_t i = 0; i < call.width; ++i) dk[i] = dv[i] = 0;
  for (int head = at.head * group; head < (at.head + 1) * group; ++head)
    for (int query = 0; query < static_cast<int>(call.queries); ++query) {
      if (at.row >= flash::visible_to(call, query, length)) continue;
      const Pair pair = pair_of(call, at.sample, head, query, at.row);
      add(dk, pair.gradient, row_of(call.q, call, at.sample, query, head), call.width);
      add(dv, pair.weight, row_of(call.dout, call, at.sample, query, head), call.width);
    }
  scale(dk, call.scale, call.width);
}

}  // namespace
}  // namespace f64

void attention_f64(const AttentionCall& call, cudaStream_t stream) {
  launch(stream, f64::grid_of(call.samples * call.query_heads * call.queries), f64::forward_rows, call);
}

void attention_backward_f64(const AttentionCall& call, cudaStream_t stream) {
  launch(stream, f64::grid_of(call.samples * call.query_heads * call.queries), f64::query_rows, call);
  launch(stream, f64::grid_of(call.samples * call.key_heads * call.keys), f64::key_rows, call);
}

}  // namespace mindpipe::cuda
