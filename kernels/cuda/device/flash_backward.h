#pragma once
#include "cuda/device/flash_tile.h"

/// The backward of attention in two kernels, so that nothing is added by atomics: one sums dq over keys, the
/// other dk and dv over queries.
///   p = exp(scale q k^T - log_sum), dp = dout v^T, ds = p (dp D - dout . out), D: the dropout factors, or 1
///   dq = scale ds k, dk = scale ds^T q, dv = (p D)^T dout
namespace mindpipe::cuda::flash {

/// Shared memory: a tile of queries, one of keys, and where they meet, rows of queries (dq) or keys (dk, dv).
template <class T, int rows, int width>
struct BackwardTiles {
  T q[rows][width + tile_pad<T>], dout[rows][width + tile_pad<T>], k[rows][width + tile_pad<T>],
      v[rows][width + tile_pad<T>];
  T weights[rows][rows + tile_pad<T>], gradients[rows][rows + tile_pad<T>];  ///< p D and ds
  float log2_sum[rows], delta[rows];                                         ///< a number for each query
  int seen[rows];
  std::uint8_t kept[rows][rows];
};

/// Queries from first_query on: q, dout, log2(sum), dout . out, and how many keys each sees.
template <class T, int rows, int width>
MINDPIPE_DEVICE void load_queries(const AttentionCall& call, int sample, int head, int first_query,
                                  int length, bool sixteens, BackwardTiles<T, rows, width>& t) {
  const int queries = static_cast<int>(call.queries), columns = static_cast<int>(call.width);
  const int in_use = queries - first_query < rows ? queries - first_query : rows;
  const T* dout = row_of<const T>(call.dout, call, sample, first_query, head);
  const T* out = row_of<const T>(call.out, call, sample, first_query, head);
  load<T, rows, width>(t.q, row_of<const T>(call.q, call, sample, first_query, head), call.q.row, in_use,
                       columns, sixteens);
  load<T, rows, width>(t.dout, dout, call.dout.row, in_use, columns, sixteens);
  for (int i = thread(); i < rows; i += block_threads) {
    t.log2_sum[i] = i < in_use ? *log_sum_of(call, sample, head, first_query + i) * log2_of_e : 0.0f;
    t.seen[i] = visible_to(call, first_query + i, length);
  }
  for (int row = warp(); row < rows; row += block_warps) {
    float total = 0;
    if (row < in_use)
      for (int col = lane(); col < columns; col += lanes)
        total = fmaf(widen(dout[row * call.dout.row + col]), widen(out[row * call.out.row + col]), total);
    total = warp_sum(total);
    if (lane() == 0) t.delta[row] = total;
  }
}
template <class T, int rows, int width>
MINDPIPE_DEVICE void load_keys(const AttentionCall& call, int sample, int key_head, int first_key, int length,
                               bool sixteens, BackwardTiles<T, rows, width>& t) {
  const int count = clamp(length - first_key, 0, rows), columns = static_cast<int>(call.width);
  load<T, rows, width>(t.k, row_of<const T>(call.k, call, sample, first_key, key_head), call.k.row, count,
                       columns, sixteens);
  load<T, rows, width>(t.v, row_of<const T>(call.v, call, sample, first_key, key_head), call.v.row, count,
                       columns, sixteens);
}

/// p D and ds of one pair of a query and a key of the tiles, from its score and its dp.
template <class T, int rows, int width>
MINDPIPE_DEVICE void pair_gradients(const AttentionCall& call, int query, int key, int first_key, float score,
                                    float dp, const BackwardTiles<T, rows, width>& t, float& weight,
                                    float& gradient) {
  weight = gradient = 0;
  if (first_key + key >= t.seen[query]) return;
  const float p = exp2f(fmaf(score, static_cast<float>(call.scale) * log2_of_e, -t.log2_sum[query]));
  const float factor = call.threshold == 0  ? 1.0f
                       : t.kept[query][key] ? static_cast<float>(call.kept_scale)
                                            : 0.0f;
  weight = p * factor;
  gradient = p * (dp * factor - t.delta[query]);
}

/// dq of a tile of queries, over tiles of keys in order.
template <class T, int rows, int width>
MINDPIPE_DEVICE void query_block(const AttentionCall& call, int tile, int head, int sample, bool sixteens,
                                 BackwardTiles<T, rows, width>& t) {
  const int first_query = tile * rows, queries = static_cast<int>(call.queries),
            columns = static_cast<int>(call.width);
  const int length = length_of(call, sample),
            in_use = queries - first_query < rows ? queries - first_query : rows;
  const int seen = visible_to(call, first_query + in_use - 1, length);
  load_queries<T, rows, width>(call, sample, head, first_query, length, sixteens, t);
  BlockSums<T, rows, width> dq;
  dq.clear();
  for (int first_key = 0; first_key < seen; first_key += rows) {
    __syncthreads();
    load_keys<T, rows, width>(call, sample, key_head_of(call, head), first_key, length, sixteens, t);
    if (call.threshold != 0) draw_mask<rows>(call, sample, head, first_query, first_key, t.kept);
    __syncthreads();
    BlockSums<T, rows, rows> scores, dp;
    scores.clear();
    dp.clear();
    scores.template add_rows<width>(t.q, t.k);
    dp.template add_rows<width>(t.dout, t.v);
    scores.each(dp, [&](int query, int key, float score, float of_weight) {
      float weight, gradient;
      pair_gradients<T, rows, width>(call, query, key, first_key, score, of_weight, t, weight, gradient);
      put(t.gradients[query][key], gradient);
    });
    __syncthreads();
    dq.template add_cols<rows>(t.gradients, t.k);
  }
  const float scale = static_cast<float>(call.scale);
  T* to = row_of<T>(call.dq, call, sample, first_query, head);
  dq.each([&](int row, int col, float value) {
    if (row < in_use && col < columns) put(to[row * call.dq.row + col], value * scale);
  });
}

/// dk and dv of a tile of keys: query heads of the group, tiles of queries in order; zeros for unseen keys.
template <class T, int rows, int width>
MINDPIPE_DEVICE void key_block(const AttentionCall& call, int tile, int key_head, int sample, bool sixteens,
                               BackwardTiles<T, rows, width>& t) {
  const int first_key = tile * rows, queries = static_cast<int>(call.queries),
            keys = static_cast<int>(call.keys), columns = static_cast<int>(call.width);
  const int length = length_of(call, sample), in_use = keys - first_key < rows ? keys - first_key : rows,
            group = static_cast<int>(call.query_heads / call.key_heads);
  load_keys<T, rows, width>(call, sample, key_head, first_key, length, sixteens, t);
  BlockSums<T, rows, width> dk, dv;
  dk.clear();
  dv.clear();
  const int first_reader = call.causal ? clamp(first_key - keys + queries, 0, queries) / rows * rows : 0;
  const int last_reader = first_key < length ? queries : 0;
  for (int head = key_head * group; head < (key_head + 1) * group; ++head)
    for (int first_query = first_reader; first_query < last_reader; first_query += rows) {
      __syncthreads();
      load_queries<T, rows, width>(call, sample, head, first_query, length, sixteens, t);
      if (call.threshold != 0) draw_mask<rows>(call, sample, head, first_query, first_key, t.kept);
      __syncthreads();
      BlockSums<T, rows, rows> scores, dp;
      scores.clear();
      dp.clear();
      scores.template add_rows<width>(t.k, t.q);
      dp.template add_rows<width>(t.v, t.dout);
      scores.each(dp, [&](int key, int query, float score, float of_weight) {
        float weight, gradient;
        pair_gradients<T, rows, width>(call, query, key, first_key, score, of_weight, t, weight, gradient);
        put(t.weights[key][query], weight);
        put(t.gradients[key][query], gradient);
      });
      __syncthreads();
      dv.template add_cols<rows>(t.weights, t.dout);
      dk.template add_cols<rows>(t.gradients, t.q);
    }
  const float scale = static_cast<float>(call.scale);
  T *to_k = row_of<T>(call.dk, call, sample, first_key, key_head),
    *to_v = row_of<T>(call.dv, call, sample, first_key, key_head);
  dk.each(dv, [&](int row, int col, float of_key, float of_value) {
    if (row >= in_use || col >= columns) return;
    put(to_k[row * call.dk.row + col], of_key * scale);
    put(to_v[row * call.dv.row + col], of_value);
  });
}

}  // namespace mindpipe::cuda::flash
