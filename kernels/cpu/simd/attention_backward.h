#pragma once
#include "cpu/simd/attention_forward.h"

namespace mindpipe::MINDPIPE_ISA::tile {

/// Rows of a tile of queries as factors: along and transposed for products over the width, down for those
/// over queries, which is the same as along where words are single numbers.
struct QueryRows {
  float *along, *across, *down;
};

/// What a backward task works in; dk and dv are strips of f32, tile by tile, as the packed keys are.
struct BackwardTiles {
  QueryRows q, dout;
  float *scores, *gradients, *dq, *factors, *log2_sum, *delta, *dk, *dv;
  Softened softened;
  PackedKeys keys;
};
template <class Words>
std::size_t lay_out(const AttentionCall& call, void* scratch, BackwardTiles& t) {
  Carver carver{static_cast<float*>(scratch)};
  const std::int64_t columns = strips_of(call.width) * lanes, tiles = (call.keys + keys - 1) / keys;
  constexpr bool pairs = Words::depths > 1;
  for (QueryRows* rows : {&t.q, &t.dout}) {
    for (float** form : {&rows->along, &rows->across})
      *form = carver.take(floats_along<Words>(queries, call.width));
    rows->down = pairs ? carver.take(floats_down<Words>(queries, call.width)) : rows->along;
  }
  t.dq = carver.take(columns * queries);
  for (float** tile : {&t.scores, &t.gradients}) *tile = carver.take(keys * queries);
  t.softened = {pairs ? carver.take(keys * words_of<Words>(queries)) : t.scores,
                pairs ? carver.take(keys * words_of<Words>(queries)) : t.gradients, t.gradients};
  for (float** row : {&t.log2_sum, &t.delta}) *row = carver.take(queries);
  for (float** whole : {&t.keys.k, &t.keys.v})
    *whole = carver.take(floats_along<Words>(keys, call.width) * tiles);
  t.keys.k_down = pairs ? carver.take(floats_down<Words>(keys, call.width) * tiles) : t.keys.k;
  for (float** whole : {&t.dk, &t.dv}) *whole = carver.take(columns * keys * tiles);
  t.factors = call.threshold == 0 ? nullptr : carver.take(keys * queries);
  return carver.bytes();
}
template <class Words>
std::size_t backward_scratch(const AttentionCall& call) {
  BackwardTiles tiles;
  return lay_out<Words>(call, nullptr, tiles);
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

template <class Words>
void pack_queries(const typename Words::Value* from, std::int64_t row_stride, int rows, int width,
                  const QueryRows& to) {
  const int padded = round_up(rows, 32);
  pack_along<Words, queries>(from, row_stride, rows, padded, width, to.along);
  transpose_strips(to.along, padded, words_of<Words>(width), to.across);
  if (to.down != to.along) pack_down<Words, queries>(from, row_stride, rows, padded, width, to.down);
}

/// The gradients of one tile of queries: dq is written, its part of dk and dv is added.
template <class Words>
void backward_tile(const AttentionCall& call, std::int64_t sample, std::int64_t head,
                   std::int64_t first_query, BackwardTiles& t) {
  using T = typename Words::Value;
  const int width = static_cast<int>(call.width), words = words_of<Words>(width);
  const int columns =
      static_cast<int>(call.queries - first_query < queries ? call.queries - first_query : queries);
  const std::int64_t length = length_of(call, sample), key_head = key_head_of(call, head),
                     seen = visible_to(call, first_query + columns - 1, length);
  const float scale = static_cast<float>(call.scale), c = scale * log2_of_e;

  const T* dout = row_of<const T>(call.dout, call, sample, first_query, head);
  pack_queries<Words>(row_of<const T>(call.q, call, sample, first_query, head), call.q.row, columns, width,
                      t.q);
  pack_queries<Words>(dout, call.dout.row, columns, width, t.dout);
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
    const TilePlace at = pack_keys<Words>(call, sample, key_head, first_key, length, t.keys);
    const std::int64_t sums = first_key * strips_of(width) * lanes;
    if (t.factors != nullptr) draw_factors(call, extent, sample, head, first_query, first_key, t.factors);
    scores<typename Words::Unit>(extent, words, t.keys.k + at.along, t.q.across, t.scores);
    scores<typename Words::Unit>(extent, words, t.keys.v + at.along, t.dout.across, t.gradients);
    softmax_backward<Words>(extent, c, t.factors, t.log2_sum, t.delta, t.scores, t.gradients, t.softened);
    add_over_queries<Words>(extent, width, t.softened.p, t.dout.down, t.dv + sums);
    add_over_queries<Words>(extent, width, t.softened.ds, t.q.down, t.dk + sums);
    add_over_keys<Words, Start::sum>(extent, width, t.softened.ds_over_keys, t.keys.k_down + at.down, nullptr,
                                     t.dq);
  }
  unpack_strips<queries>(t.dq, &scale, false, columns, width,
                         row_of<T>(call.dq, call, sample, first_query, head), call.dq.row);
}

/// dv = (p D)^T dout, ds = p ((dout v^T) D - dout . out), dq = scale ds k, dk = scale ds^T q: query heads of
/// the group in order, tiles of queries in order, tiles of keys in order.
template <class Words>
void backward(const AttentionCall& call, std::int64_t sample, std::int64_t key_head, void* scratch) {
  using T = typename Words::Value;
  BackwardTiles t;
  lay_out<Words>(call, scratch, t);
  const int width = static_cast<int>(call.width), tile_floats = strips_of(width) * lanes * keys;
  const std::int64_t length = length_of(call, sample), group = call.query_heads / call.key_heads,
                     tiles = (length + keys - 1) / keys;
  for (float* whole : {t.dk, t.dv})
    std::memset(whole, 0, static_cast<std::size_t>(tiles * tile_floats) * sizeof(float));
  for (std::int64_t head = key_head * group; head < (key_head + 1) * group; ++head)
    for (std::int64_t first = 0; first < call.queries; first += queries)
      backward_tile<Words>(call, sample, head, first, t);

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
