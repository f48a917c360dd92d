#pragma once
#include "cuda/device/flash_tile.h"

/// Attention by tiles. The formulas as plain loops: `Reference` in tests/kernels/attention_cases.h.
namespace mindpipe::cuda::flash {

/// A block's shared memory: a tile of queries against tiles of keys.
template <class T, int rows, int width>
struct ForwardTiles {
  T q[rows][width + tile_pad<T>], k[rows][width + tile_pad<T>], v[rows][width + tile_pad<T>];
  float scores[rows][rows + 4];
  T weights[rows][rows + tile_pad<T>];
  float maximum[rows], sum[rows], correction[rows];
  std::uint8_t kept[rows][rows];
};

/// One step of the online softmax for each row: m' = max(m, row of s), correction = 2^(c m - c m'), p = 2^(c
/// s - c m'), sum = sum correction + row of p, c = scale log2(e); then p times the dropout factors, which the
/// sum does not see. A warp takes every eighth row.
template <class T, int rows, int width>
MINDPIPE_DEVICE void softmax_step(const AttentionCall& call, int first_query, int first_key, int length,
                                  ForwardTiles<T, rows, width>& t) {
  const float c = static_cast<float>(call.scale) * log2_of_e, factor = static_cast<float>(call.kept_scale);
  for (int row = warp(); row < rows; row += block_warps) {
    const int seen = clamp(visible_to(call, first_query + row, length) - first_key, 0, rows);
    const float before = t.maximum[row];
    float highest = before;
    for (int col = lane(); col < seen; col += lanes) highest = fmaxf(highest, t.scores[row][col]);
    highest = warp_maximum(highest);
    float total = 0;
    for (int col = lane(); col < rows; col += lanes) {
      const float p = col < seen ? exp2f(fmaf(t.scores[row][col], c, -(highest * c))) : 0.0f;
      total += p;
      put(t.weights[row][col], call.threshold == 0 ? p : t.kept[row][col] ? p * factor : 0.0f);
    }
    total = warp_sum(total);
    __syncwarp();  // the maximum of before has been read
    if (lane() == 0) {
      const float shrink = exp2f((before - highest) * c);
      t.maximum[row] = highest;
      t.correction[row] = shrink;
      t.sum[row] = fmaf(t.sum[row], shrink, total);
    }
  }
}

/// out = softmax(scale q k^T) v for a tile of queries, over tiles of keys in order: sums = sums correction +
/// p v, in the end out = sums / sum, log_sum = scale maximum + log(sum). A row that sees no key gives zeros.
template <class T, int rows, int width>
MINDPIPE_DEVICE void forward_block(const AttentionCall& call, int tile, int head, int sample, bool sixteens,
                                   ForwardTiles<T, rows, width>& t) {
  const int first_query = tile * rows, queries = static_cast<int>(call.queries),
            columns = static_cast<int>(call.width), key_head = key_head_of(call, head);
  const int length = length_of(call, sample),
            in_use = queries - first_query < rows ? queries - first_query : rows;
  const int seen = visible_to(call, first_query + in_use - 1, length);
  load<T, rows, width>(t.q, row_of<const T>(call.q, call, sample, first_query, head), call.q.row, in_use,
                       columns, sixteens);
  for (int i = thread(); i < rows; i += block_threads) {
    t.maximum[i] = -1e30f;
    t.sum[i] = 0;
  }
  BlockSums<T, rows, width> out;
  out.clear();
  for (int first_key = 0; first_key < seen; first_key += rows) {
    const int count = length - first_key < rows ? length - first_key : rows;
    __syncthreads();  // the tiles before have been read
    load<T, rows, width>(t.k, row_of<const T>(call.k, call, sample, first_key, key_head), call.k.row, count,
                         columns, sixteens);
    load<T, rows, width>(t.v, row_of<const T>(call.v, call, sample, first_key, key_head), call.v.row, count,
                         columns, sixteens);
    if (call.threshold != 0) draw_mask<rows>(call, sample, head, first_query, first_key, t.kept);
    __syncthreads();
    BlockSums<T, rows, rows> scores;
    scores.clear();
    scores.template add_rows<width>(t.q, t.k);
    scores.each([&](int row, int col, float value) { t.scores[row][col] = value; });
    __syncthreads();
    softmax_step<T, rows, width>(call, first_query, first_key, length, t);
    __syncthreads();
    out.each([&](int row, int, float& value) { value *= t.correction[row]; });
    out.template add_cols<rows>(t.weights, t.v);
  }
  __syncthreads();
  T* to = row_of<T>(call.out, call, sample, first_query, head);
  out.each([&](int row, int col, float value) {
    if (row < in_use && col < columns)
      put(to[row * call.out.row + col], t.sum[row] == 0 ? 0.0f : value / t.sum[row]);
  });
  for (int row = thread(); row < in_use; row += block_threads)
    *log_sum_of(call, sample, head, first_query + row) =
        t.sum[row] == 0 ? 0.0f : fmaf(t.maximum[row], static_cast<float>(call.scale), logf(t.sum[row]));
}

}  // namespace mindpipe::cuda::flash
