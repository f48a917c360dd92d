#pragma once
#include "cpu/simd/attention_call.h"
#include "cpu/simd/number.h"

/// Attention as one would write it down, a row of scores at a time: for gradient checks in f64.
namespace mindpipe::MINDPIPE_ISA::plain {

inline double kept_factor(const AttentionCall& call, std::uint32_t sample, std::uint64_t element) {
  std::uint32_t words[4];
  draw_block(call.key, call.step, sample, element / 4, words);
  return words[element % 4] >= call.threshold ? call.kept_scale : 0.0;
}

/// D: 1 without dropout, else 0 or 1 / (1 - p) for each key of the row
inline void draw_row(const AttentionCall& call, std::int64_t sample, std::int64_t head, std::int64_t query,
                     std::int64_t count, double* factor) {
  const std::uint64_t first = mask_row(call, head, query);
  const std::uint32_t stream_sample = call.sample + static_cast<std::uint32_t>(sample);
  for (std::int64_t j = 0; j < count; ++j)
    factor[j] =
        call.threshold == 0 ? 1.0 : kept_factor(call, stream_sample, first + static_cast<std::uint64_t>(j));
}

/// p[j] = exp(scale q.k[j] - log_sum), j < count; returns log_sum = log(sum exp(scale q.k)), 0 without a key
template <class T>
double probabilities(const AttentionCall& call, std::int64_t sample, std::int64_t head, std::int64_t query,
                     std::int64_t count, double* p) {
  if (count == 0) return 0;
  const T* q = row_of<const T>(call.q, call, sample, query, head);
  const std::int64_t key_head = key_head_of(call, head);
  double maximum = 0, sum = 0;
  for (std::int64_t j = 0; j < count; ++j) {
    const T* k = row_of<const T>(call.k, call, sample, j, key_head);
    double dot = 0;
    for (std::int64_t c = 0; c < call.width; ++c)
      dot += static_cast<double>(widen(q[c])) * static_cast<double>(widen(k[c]));
    p[j] = call.scale * dot;
    maximum = j == 0 || p[j] > maximum ? p[j] : maximum;
  }
  for (std::int64_t j = 0; j < count; ++j) sum += __builtin_exp(p[j] - maximum);
  const double log_sum = maximum + __builtin_log(sum);
  for (std::int64_t j = 0; j < count; ++j) p[j] = __builtin_exp(p[j] - log_sum);
  return log_sum;
}

/// Scores, mask factors and gradients of one row, then dk and dv of the whole key head.
inline std::size_t forward_scratch(const AttentionCall& call) {
  return static_cast<std::size_t>(2 * call.keys + call.width) * sizeof(double);
}
inline std::size_t backward_scratch(const AttentionCall& call) {
  return static_cast<std::size_t>(3 * call.keys + call.width + 2 * call.keys * call.width) * sizeof(double);
}
inline constexpr std::int64_t tile_queries = 16;

/// out = (P D) v
template <class T>
void forward(const AttentionCall& call, std::int64_t sample, std::int64_t head, std::int64_t first_query,
             std::int64_t last_query, void* scratch) {
  double *p = static_cast<double*>(scratch), *factor = p + call.keys, *sum = factor + call.keys;
  const std::int64_t length = length_of(call, sample), key_head = key_head_of(call, head);
  for (std::int64_t i = first_query; i < last_query; ++i) {
    const std::int64_t count = visible_to(call, i, length);
    const double log_sum = probabilities<T>(call, sample, head, i, count, p);
    draw_row(call, sample, head, i, count, factor);
    for (std::int64_t c = 0; c < call.width; ++c) sum[c] = 0;
    for (std::int64_t j = 0; j < count; ++j) {
      const T* v = row_of<const T>(call.v, call, sample, j, key_head);
      for (std::int64_t c = 0; c < call.width; ++c)
        sum[c] += p[j] * factor[j] * static_cast<double>(widen(v[c]));
    }
    T* out = row_of<T>(call.out, call, sample, i, head);
    for (std::int64_t c = 0; c < call.width; ++c) put(out[c], sum[c]);
    const std::int64_t at = (sample * call.query_heads + head) * call.queries + i;
    if (call.log_sum_is_f64) static_cast<double*>(call.log_sum)[at] = log_sum;
    else static_cast<float*>(call.log_sum)[at] = static_cast<float>(log_sum);
  }
}

/// dP = (dout v^T) D, dS = P (dP - sum(P dP)); dv += (P D)^T dout, dq = scale dS k, dk += scale dS^T q
template <class T>
void backward(const AttentionCall& call, std::int64_t sample, std::int64_t key_head, void* scratch) {
  double *p = static_cast<double*>(scratch), *factor = p + call.keys, *dp = factor + call.keys,
         *sum = dp + call.keys;
  double *dk = sum + call.width, *dv = dk + call.keys * call.width;
  for (std::int64_t e = 0; e < 2 * call.keys * call.width; ++e) dk[e] = 0;
  const std::int64_t length = length_of(call, sample), group = call.query_heads / call.key_heads;
  for (std::int64_t head = key_head * group; head < (key_head + 1) * group; ++head) {
    for (std::int64_t i = 0; i < call.queries; ++i) {
      const std::int64_t count = visible_to(call, i, length);
      probabilities<T>(call, sample, head, i, count, p);
      draw_row(call, sample, head, i, count, factor);
      const T *dout = row_of<const T>(call.dout, call, sample, i, head),
              *q = row_of<const T>(call.q, call, sample, i, head);
      double mean = 0;
      for (std::int64_t j = 0; j < count; ++j) {
        const T* v = row_of<const T>(call.v, call, sample, j, key_head);
        double dot = 0;
        for (std::int64_t c = 0; c < call.width; ++c)
          dot += static_cast<double>(widen(dout[c])) * static_cast<double>(widen(v[c]));
        dp[j] = dot * factor[j];
        mean += p[j] * dp[j];
      }
      for (std::int64_t c = 0; c < call.width; ++c) sum[c] = 0;
      for (std::int64_t j = 0; j < count; ++j) {
        const T* k = row_of<const T>(call.k, call, sample, j, key_head);
        const double weight = p[j] * factor[j], ds = call.scale * p[j] * (dp[j] - mean);
        for (std::int64_t c = 0; c < call.width; ++c) {
          dv[j * call.width + c] += weight * static_cast<double>(widen(dout[c]));
          dk[j * call.width + c] += ds * static_cast<double>(widen(q[c]));
          sum[c] += ds * static_cast<double>(widen(k[c]));
        }
      }
      T* dq = row_of<T>(call.dq, call, sample, i, head);
      for (std::int64_t c = 0; c < call.width; ++c) put(dq[c], sum[c]);
    }
  }
  for (std::int64_t j = 0; j < call.keys; ++j)
    for (std::int64_t c = 0; c < call.width; ++c) {
      put(row_of<T>(call.dk, call, sample, j, key_head)[c], dk[j * call.width + c]);
      put(row_of<T>(call.dv, call, sample, j, key_head)[c], dv[j * call.width + c]);
    }
}

}  // namespace mindpipe::MINDPIPE_ISA::plain
