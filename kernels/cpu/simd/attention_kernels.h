#pragma once
#include <cstddef>
#include <cstdint>

#include "cpu/isa.h"
#include "operations/attention_views.h"

namespace mindpipe {

/// Arrays are by dtype: f64, f32, bf16. A forward task is a run of tiles of queries, [first, last), of one
/// head of one sample: how long the runs are changes no bit, but the longer, the less is packed twice. A
/// backward task is one key head of one sample with all queries of its group. Scratch begins at a multiple of
/// 64 bytes.
struct AttentionKernels {
  std::int64_t tile_queries[3];
  std::size_t (*forward_scratch[3])(const AttentionCall& call);  ///< bytes
  std::size_t (*backward_scratch[3])(const AttentionCall& call);
  void (*forward[3])(const AttentionCall& call, std::int64_t sample, std::int64_t head,
                     std::int64_t first_query, std::int64_t last_query, void* scratch);
  void (*backward[3])(const AttentionCall& call, std::int64_t sample, std::int64_t key_head, void* scratch);
};
MINDPIPE_DECLARE_KERNELS(AttentionKernels, attention_kernels)

}  // namespace mindpipe
