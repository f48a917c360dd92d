#pragma once
#include "cpu/simd/attention_dropout.h"
#include "cpu/simd/attention_pack.h"
#include "cpu/simd/attention_softmax.h"
#include "cpu/simd/math.h"

namespace mindpipe::MINDPIPE_ISA::tile {

/// Hands out parts of a task's scratch, or counts them where there is none.
struct Carver {
  float* base;
  std::int64_t used = 0;
  float* take(std::int64_t floats) {
    float* taken = base == nullptr ? nullptr : base + used;
    used += floats;
    return taken;
  }
  std::size_t bytes() const { return static_cast<std::size_t>(used) * sizeof(float); }
};

/// How the diagonal crosses the tile of keys from first_key on.
inline Extent extent_of(const AttentionCall& call, std::int64_t first_query, int columns,
                        std::int64_t first_key, std::int64_t seen) {
  const std::int64_t rows = seen - first_key,
                     diagonal = first_query + call.keys - call.queries + 1 - first_key;
  Extent extent;
  extent.rows = static_cast<int>(rows < keys ? rows : keys);
  extent.columns = columns;
  extent.diagonal = !call.causal || diagonal > keys ? keys
                    : diagonal < -queries           ? -queries
                                                    : static_cast<int>(diagonal);
  return extent;
}

/// Keys and values of one head as strips, tile by tile: each tile is packed when it is first asked for, and
/// kept for the queries that follow. Packed, they also spread over all sets of the caches; rows of a head, a
/// power of two apart, do not. What goes into scores lies along; what products over keys take lies down.
struct PackedKeys {
  float *k = nullptr, *v = nullptr;            ///< along
  float *k_down = nullptr, *v_down = nullptr;  ///< where words are single numbers, k and v themselves
  bool keep = true;         ///< false: for one tile of queries, all tiles of keys take the same place
  std::int64_t packed = 0;  ///< tiles
};
/// Where a tile begins in what lies along, and in what lies down.
struct TilePlace {
  std::int64_t along, down;
};
/// Packs as much as fits of the tile from first_key on, if it is not there yet.
template <class Words>
TilePlace pack_keys(const AttentionCall& call, std::int64_t sample, std::int64_t key_head,
                    std::int64_t first_key, std::int64_t length, PackedKeys& to) {
  const std::int64_t tile = first_key / keys, rest = length - first_key;
  const int width = static_cast<int>(call.width), rows = static_cast<int>(rest < keys ? rest : keys),
            padded = round_up(rows, block_rows);
  const TilePlace at{to.keep ? tile * floats_along<Words>(keys, width) : 0,
                     to.keep ? tile * floats_down<Words>(keys, width) : 0};
  if (tile < to.packed) return at;
  const auto pack = [&](const HeadsView& view, float* along, float* down) {
    const auto* from = row_of<const typename Words::Value>(view, call, sample, first_key, key_head);
    if (along) pack_along<Words, keys>(from, view.row, rows, padded, width, along + at.along);
    if (down && down != along) pack_down<Words, keys>(from, view.row, rows, padded, width, down + at.down);
  };
  pack(call.k, to.k, to.k_down);
  pack(call.v, to.v, to.v_down);
  to.packed = tile + 1;
  return at;
}

/// What a forward task works in.
struct ForwardTiles {
  float *q, *q_across, *scores, *out, *factors, *maximum, *sum, *correction;
  PackedKeys keys;
};
template <class Words>
std::size_t lay_out(const AttentionCall& call, void* scratch, ForwardTiles& t) {
  Carver carver{static_cast<float*>(scratch)};
  const std::int64_t tiles = (call.keys + keys - 1) / keys;
  t.q = t.out = carver.take(strips_of(call.width) * lanes * queries);
  t.q_across = carver.take(floats_along<Words>(queries, call.width));
  t.scores = carver.take(keys * queries);
  for (float** row : {&t.maximum, &t.sum, &t.correction}) *row = carver.take(queries);
  t.keys.k = carver.take(floats_along<Words>(keys, call.width) * tiles);
  t.keys.v_down = carver.take(floats_down<Words>(keys, call.width) * tiles);
  t.factors = call.threshold == 0 ? nullptr : carver.take(keys * queries);
  return carver.bytes();
}
template <class Words>
std::size_t forward_scratch(const AttentionCall& call) {
  ForwardTiles tiles;
  return lay_out<Words>(call, nullptr, tiles);
}

/// out = softmax(scale q k^T) v for a tile of queries, over tiles of keys in order:
/// sums = sums * correction + p v, and in the end out = sums / sum, log_sum = scale maximum + log(sum).
template <class Words>
void forward_tile(const AttentionCall& call, std::int64_t sample, std::int64_t head, std::int64_t first_query,
                  ForwardTiles& t) {
  using T = typename Words::Value;
  const int width = static_cast<int>(call.width), words = words_of<Words>(width);
  const int columns =
                static_cast<int>(call.queries - first_query < queries ? call.queries - first_query : queries),
            padded = round_up(columns, 32);
  const std::int64_t length = length_of(call, sample), key_head = key_head_of(call, head),
                     seen = visible_to(call, first_query + columns - 1, length);
  const float c = static_cast<float>(call.scale) * log2_of_e;

  pack_along<Words, queries>(row_of<const T>(call.q, call, sample, first_query, head), call.q.row, columns,
                             padded, width, t.q);
  transpose_strips(t.q, padded, words, t.q_across);
  std::memset(t.out, 0, static_cast<std::size_t>(strips_of(width) * lanes * queries) * sizeof(float));
  for (int i = 0; i < queries; i += lanes) {
    store(t.maximum + i, broadcast(lowest));
    store(t.sum + i, zero());
  }
  for (std::int64_t first_key = 0; first_key < seen; first_key += keys) {
    const Extent extent = extent_of(call, first_query, columns, first_key, seen);
    const TilePlace at = pack_keys<Words>(call, sample, key_head, first_key, length, t.keys);
    if (t.factors != nullptr) draw_factors(call, extent, sample, head, first_query, first_key, t.factors);
    scores<typename Words::Unit>(extent, words, t.keys.k + at.along, t.q_across, t.scores);
    softmax_step<Words>(extent, c, t.factors, t.scores, t.maximum, t.sum, t.correction);
    add_over_keys<Words, Start::scaled_sum>(extent, width, t.scores, t.keys.v_down + at.down, t.correction,
                                            t.out);
  }
  float* log_sum =
      static_cast<float*>(call.log_sum) + (sample * call.query_heads + head) * call.queries + first_query;
  for (int i = 0; i < columns; i += lanes) {
    const Vector sum = load(t.sum + i);
    const Mask empty = equal(sum, zero());
    store(t.correction + i, select(empty, zero(), broadcast(1.0f) / sum));
    const Vector result =
        multiply_add(load(t.maximum + i), broadcast(static_cast<float>(call.scale)), log(sum));
    store(log_sum + i, select(empty, zero(), result), columns - i);
  }
  unpack_strips<queries>(t.out, t.correction, true, columns, width,
                         row_of<T>(call.out, call, sample, first_query, head), call.out.row);
}

template <class Words>
void forward(const AttentionCall& call, std::int64_t sample, std::int64_t head, std::int64_t first_query,
             std::int64_t last_query, void* scratch) {
  ForwardTiles t;
  lay_out<Words>(call, scratch, t);
  t.keys.keep = last_query - first_query > queries;
  for (; first_query < last_query; first_query += queries)
    forward_tile<Words>(call, sample, head, first_query, t);
}

}  // namespace mindpipe::MINDPIPE_ISA::tile
