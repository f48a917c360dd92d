#pragma once
#include "cpu/simd/attention_forward.h"

namespace mindpipe::MINDPIPE_ISA::tile {

/// What a backward task works in; dk and dv are strips, tile by tile, as the packed keys are.
struct BackwardTiles {
  float *q, *q_across, *dout, *dout_across, *scores, *gradients, *dq, *factors, *log2_sum, *delta, *dk, *dv;
  PackedKeys keys;
};
inline std::size_t lay_out(const AttentionCall& call, void* scratch, BackwardTiles& t) {
  Carver carver{static_cast<float*>(scratch)};
  const std::int64_t columns = strips_of(call.width) * lanes, all_keys = (call.keys + keys - 1) / keys * keys;
  for (float** tile : {&t.q, &t.q_across, &t.dout, &t.dout_across, &t.dq})
    *tile = carver.take(columns * queries);
  for (float** tile : {&t.scores, &t.gradients}) *tile = carver.take(keys * queries);
  for (float** row : {&t.log2_sum, &t.delta}) *row = carver.take(queries);
  for (float** whole : {&t.keys.k, &t.keys.v, &t.dk, &t.dv}) *whole = carver.take(columns * all_keys);
  t.factors = call.threshold == 0 ? nullptr : carver.take(keys * queries);
  return carver.bytes();
}
inline std::size_t backward_scratch(const AttentionCall& call) {
  BackwardTiles tiles;
  return lay_out(call, nullptr, tiles);
}

/// delta[i] = dout[i] . out[i]
template <class T>
void row_products(const T* dout, std::int64_t dout_row, const T* out, std::int64_t out_row, int rows,
                  int width, float* delta) {
  for (int i = 0; i < rows; ++i) {
    Vector total = zero();
    for (int first = 0; first < width; first += lanes) {
      const int count = width - first;
      const T *a = dout + i * dout_row + first, *b = out + i * out_row + first;
      total = count >= lanes ? multiply_add(load(a), load(b), total)
                             : multiply_add(load(a, count), load(b, count), total);
    }
    delta[i] = sum(total);
  }
}

/// The gradients of one tile of queries: dq is written, its part of dk and dv is added.
template <class T>
void backward_tile(const AttentionCall& call, std::int64_t sample, std::int64_t head,
                   std::int64_t first_query, BackwardTiles& t) {
  const int width = static_cast<int>(call.width);
  const int columns =
                static_cast<int>(call.queries - first_query < queries ? call.queries - first_query : queries),
            padded = round_up(columns, 32);
  const std::int64_t length = length_of(call, sample), key_head = key_head_of(call, head),
                     seen = visible_to(call, first_query + columns - 1, length);
  const float scale = static_cast<float>(call.scale), c = scale * log2_of_e;

  const T* dout = row_of<const T>(call.dout, call, sample, first_query, head);
  pack_strips<queries>(row_of<const T>(call.q, call, sample, first_query, head), call.q.row, columns, padded,
                       width, t.q);
  pack_strips<queries>(dout, call.dout.row, columns, padded, width, t.dout);
  transpose_strips(t.q, padded, width, t.q_across);
  transpose_strips(t.dout, padded, width, t.dout_across);
  const float* log_sum = static_cast<const float*>(call.log_sum) +
                         (sample * call.query_heads + head) * call.queries + first_query;
  for (int i = 0; i < queries; i += lanes) {
    store(t.log2_sum + i, i < columns ? load(log_sum + i, columns - i) * broadcast(log2_of_e) : zero());
    store(t.delta + i, zero());
  }
  row_products(dout, call.dout.row, row_of<const T>(call.out, call, sample, first_query, head), call.out.row,
               columns, width, t.delta);
  std::memset(t.dq, 0, static_cast<std::size_t>(strips_of(width) * lanes * queries) * sizeof(float));

  for (std::int64_t first_key = 0; first_key < seen; first_key += keys) {
    const Extent extent = extent_of(call, first_query, columns, first_key, seen);
    const std::int64_t at = pack_keys<T>(call, sample, key_head, first_key, length, t.keys);
    if (t.factors != nullptr) draw_factors(call, extent, sample, head, first_query, first_key, t.factors);
    scores(extent, width, t.keys.k + at, t.q_across, t.scores);
    scores(extent, width, t.keys.v + at, t.dout_across, t.gradients);
    softmax_backward(extent, c, t.factors, t.log2_sum, t.delta, t.scores, t.gradients);
    add_over_queries(extent, width, t.scores, t.dout, t.dv + at);
    add_over_queries(extent, width, t.gradients, t.q, t.dk + at);
    add_over_keys<Start::sum>(extent, width, t.gradients, t.keys.k + at, nullptr, t.dq);
  }
  unpack_strips<queries>(t.dq, &scale, false, columns, width,
                         row_of<T>(call.dq, call, sample, first_query, head), call.dq.row);
}

/// dv = (p D)^T dout, ds = p ((dout v^T) D - dout . out), dq = scale ds k, dk = scale ds^T q: query heads of
/// the group in order, tiles of queries in order, tiles of keys in order.
template <class T>
void backward(const AttentionCall& call, std::int64_t sample, std::int64_t key_head, void* scratch) {
  BackwardTiles t;
  lay_out(call, scratch, t);
  const int width = static_cast<int>(call.width), tile_floats = strips_of(width) * lanes * keys;
  const std::int64_t length = length_of(call, sample), group = call.query_heads / call.key_heads,
                     tiles = (length + keys - 1) / keys;
  for (float* whole : {t.dk, t.dv})
    std::memset(whole, 0, static_cast<std::size_t>(tiles * tile_floats) * sizeof(float));
  for (std::int64_t head = key_head * group; head < (key_head + 1) * group; ++head)
    for (std::int64_t first = 0; first < call.queries; first += queries)
      backward_tile<T>(call, sample, head, first, t);

  const float scale = static_cast<float>(call.scale), one = 1;
  for (std::int64_t i = 0; i < tiles; ++i) {
    const std::int64_t first = i * keys;
    const int rows = static_cast<int>(length - first < keys ? length - first : keys);
    unpack_strips<keys>(t.dk + i * tile_floats, &scale, false, rows, width,
                        row_of<T>(call.dk, call, sample, first, key_head), call.dk.row);
    unpack_strips<keys>(t.dv + i * tile_floats, &one, false, rows, width,
                        row_of<T>(call.dv, call, sample, first, key_head), call.dv.row);
  }
  clear_rows(row_of<T>(call.dk, call, sample, length, key_head), call.dk.row, call.keys - length, width);
  clear_rows(row_of<T>(call.dv, call, sample, length, key_head), call.dv.row, call.keys - length, width);
}

}  // namespace mindpipe::MINDPIPE_ISA::tile
