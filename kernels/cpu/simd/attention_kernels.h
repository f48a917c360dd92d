#pragma once
#include <cstddef>
#include <cstdint>

#include "cpu/isa.h"

namespace mindpipe {

/// Some heads of [samples, rows, all heads, width]: the first element of the first of them, and elements from one
/// sample or row to the next. From head to head it is `width`.
struct HeadsView {
  void* data = nullptr;
  std::int64_t sample = 0, row = 0;
};

/// One question and all its operands, as the kernels see it.
struct AttentionCall {
  std::int64_t samples = 0, query_heads = 0, key_heads = 0, queries = 0, keys = 0, width = 0;
  bool causal = false;
  double scale = 1;
  const std::int32_t* key_lengths = nullptr;  ///< or null: all of `keys`
  HeadsView q, k, v, out, dout, dq, dk, dv;
  void* log_sum = nullptr;      ///< [samples, query heads, queries]
  bool log_sum_is_f64 = false;  ///< f32 otherwise
  std::uint32_t key[2] = {0, 0}, step = 0, sample = 0;  ///< the dropout stream
  std::uint32_t threshold = 0;                          ///< 0: everything is kept and nothing is drawn
  double kept_scale = 1;                                ///< 1 / (1 - p)
  std::int64_t head_offset = 0;
};

/// Arrays are by dtype: f64, f32, bf16. A forward task is a run of tiles of queries, [first, last), of one head of one sample: how long
/// the runs are changes no bit, but the longer, the less is packed twice. A backward task is one key head of one sample with all
/// queries of its group. Scratch begins at a multiple of 64 bytes.
struct AttentionKernels {
  std::int64_t tile_queries[3];
  std::size_t (*forward_scratch[3])(const AttentionCall& call);  ///< bytes
  std::size_t (*backward_scratch[3])(const AttentionCall& call);
  void (*forward[3])(const AttentionCall& call, std::int64_t sample, std::int64_t head, std::int64_t first_query, std::int64_t last_query, void* scratch);
  void (*backward[3])(const AttentionCall& call, std::int64_t sample, std::int64_t key_head, void* scratch);
};
MINDPIPE_DECLARE_KERNELS(AttentionKernels, attention_kernels)

}  // namespace mindpipe
