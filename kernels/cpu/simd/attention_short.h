#pragma once
#include "cpu/simd/attention_forward.h"

/// A few queries on many keys, as in generation: the keys are read once and not packed, scores are kept.
namespace mindpipe::MINDPIPE_ISA::few {

using namespace tile;

constexpr int block_keys = 32;  ///< read for one query after the other while they are near
constexpr int ahead = 16;       ///< rows fetched ahead

/// What is kept of each query: itself and its sums as whole vectors, and its scores.
struct Rows {
  float *q, *out, *scores;
  std::int64_t columns, row;  ///< width and keys in whole vectors
};
inline std::size_t lay_out(const AttentionCall& call, void* scratch, Rows& rows) {
  Carver carver{static_cast<float*>(scratch)};
  rows.columns = strips_of(call.width) * lanes;
  rows.row = (call.keys + lanes - 1) / lanes * lanes;
  rows.q = carver.take(few_queries * rows.columns);
  rows.out = carver.take(few_queries * rows.columns);
  rows.scores = carver.take(few_queries * rows.row);
  return carver.bytes();
}
inline std::size_t scratch_bytes(const AttentionCall& call) {
  Rows rows;
  return lay_out(call, nullptr, rows);
}

template <class T>
MINDPIPE_INLINE Vector load_strip(const T* row, int first, int width) {
  return width - first >= lanes ? load(row + first) : load(row + first, width - first);
}
template <class T>
MINDPIPE_INLINE void fetch(const T* row, int width) {
  for (int first = 0; first < width; first += 64 / static_cast<int>(sizeof(T)))
    _mm_prefetch(reinterpret_cast<const char*>(row + first), _MM_HINT_T0);
}

/// scores[j] = q . k[j]
template <class T>
void score_keys(const T* k, std::int64_t row_stride, int count, int width, const float* q, float* scores) {
  for (int j = 0; j < count; ++j, k += row_stride) {
    fetch(k + ahead * row_stride, width);
    Vector total = zero();
    for (int first = 0; first < width; first += lanes)
      total = multiply_add(load_strip(k, first, width), load(q + first), total);
    scores[j] = sum(total);
  }
}

/// scores[j] = 2^(c (scores[j] - maximum)), rounded to T; gives the sum before rounding, and the maximum
template <class T>
float soften(float* scores, std::int64_t count, float c, float& maximum) {
  Vector highest = broadcast(lowest), total = zero();
  const std::int64_t whole = count / lanes * lanes;
  const int rest = static_cast<int>(count - whole);
  for (std::int64_t j = 0; j < whole; j += lanes) highest = max(load(scores + j), highest);
  if (rest > 0) highest = max(select(first_lanes(rest), load(scores + whole), broadcast(lowest)), highest);
  maximum = largest(highest);
  const Vector factor = broadcast(c), offset = broadcast(-(maximum * c));
  for (std::int64_t j = 0; j < whole; j += lanes) {
    const Vector p = power_of_2(multiply_add(load(scores + j), factor, offset));
    total = total + p;
    store(scores + j, rounded_as(T(), p));
  }
  if (rest > 0) {
    const Vector p =
        select(first_lanes(rest), power_of_2(multiply_add(load(scores + whole), factor, offset)), zero());
    total = total + p;
    store(scores + whole, rounded_as(T(), p));
  }
  return sum(total);
}

/// out += p v: four chains by j modulo 4, then (0 + 1) + (2 + 3)
template <class T>
void add_values(const T* v, std::int64_t row_stride, int count, int width, const float* p, float* out) {
  for (int j = 0; j < count; ++j) fetch(v + (block_keys + j) * row_stride, width);
  for (int first = 0; first < width; first += lanes) {
    Vector chain[4] = {load(out + first), zero(), zero(), zero()};
    for (int j = 0; j < count; j += 4)
      for (int u = 0; u < 4 && j + u < count; ++u)
        chain[u] =
            multiply_add(broadcast(p[j + u]), load_strip(v + (j + u) * row_stride, first, width), chain[u]);
    store(out + first, (chain[0] + chain[1]) + (chain[2] + chain[3]));
  }
}

/// out = softmax(scale q k^T) v for all queries of the head
template <class T>
void forward(const AttentionCall& call, std::int64_t sample, std::int64_t head, std::int64_t, std::int64_t,
             void* scratch) {
  Rows rows;
  lay_out(call, scratch, rows);
  const int width = static_cast<int>(call.width);
  const std::int64_t length = length_of(call, sample), key_head = key_head_of(call, head),
                     seen = visible_to(call, call.queries - 1, length);
  const float scale = static_cast<float>(call.scale);
  for (std::int64_t i = 0; i < call.queries; ++i)
    for (int first = 0; first < width; first += lanes) {
      store(rows.q + i * rows.columns + first,
            load_strip(row_of<const T>(call.q, call, sample, i, head), first, width));
      store(rows.out + i * rows.columns + first, zero());
    }
  const auto for_each_block = [&](const auto& work) {
    for (std::int64_t j = 0; j < seen; j += block_keys)
      for (std::int64_t i = 0; i < call.queries; ++i) {
        const std::int64_t count = visible_to(call, i, length) - j;
        if (count > 0) work(i, j, static_cast<int>(count < block_keys ? count : block_keys));
      }
  };
  for_each_block([&](std::int64_t i, std::int64_t j, int count) {
    score_keys(row_of<const T>(call.k, call, sample, j, key_head), call.k.row, count, width,
               rows.q + i * rows.columns, rows.scores + i * rows.row + j);
  });
  float sums[few_queries];
  for (std::int64_t i = 0; i < call.queries; ++i) {
    const std::int64_t count = visible_to(call, i, length);
    float maximum = 0;
    sums[i] = count == 0 ? 0 : soften<T>(rows.scores + i * rows.row, count, scale * log2_of_e, maximum);
    const Vector log_sum = multiply_add(broadcast(maximum), broadcast(scale), log(broadcast(sums[i])));
    store(static_cast<float*>(call.log_sum) + (sample * call.query_heads + head) * call.queries + i,
          count == 0 ? zero() : log_sum, 1);
  }
  for_each_block([&](std::int64_t i, std::int64_t j, int count) {
    add_values(row_of<const T>(call.v, call, sample, j, key_head), call.v.row, count, width,
               rows.scores + i * rows.row + j, rows.out + i * rows.columns);
  });
  for (std::int64_t i = 0; i < call.queries; ++i) {
    const Vector factor = sums[i] == 0 ? zero() : broadcast(1.0f) / broadcast(sums[i]);
    T* to = row_of<T>(call.out, call, sample, i, head);
    for (int first = 0; first < width; first += lanes) {
      const Vector x = load(rows.out + i * rows.columns + first) * factor;
      if (width - first >= lanes) store(to + first, x);
      else store(to + first, x, width - first);
    }
  }
}

}  // namespace mindpipe::MINDPIPE_ISA::few
