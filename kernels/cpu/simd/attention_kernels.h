#pragma once
#include <cstddef>
#include <cstdint>

#include "cpu/isa.h"
#include "operations/attention_views.h"

namespace mindpipe {

/// How attention on operands of one type is computed. A forward task is a run of tiles of queries, [first,
/// last), of one head of one sample: how long the runs are changes no bit, but the longer, the less is packed
/// twice. A backward task is one key head of one sample with all queries of its group. Scratch begins at a
/// multiple of 64 bytes.
struct AttentionKernels {
  std::int64_t tile_queries;
  std::size_t (*forward_scratch)(const AttentionCall& call);  ///< bytes
  std::size_t (*backward_scratch)(const AttentionCall& call);
  void (*forward)(const AttentionCall& call, std::int64_t sample, std::int64_t head, std::int64_t first_query,
                  std::int64_t last_query, void* scratch);
  void (*backward)(const AttentionCall& call, std::int64_t sample, std::int64_t key_head, void* scratch);
};
struct AttentionByType {
  AttentionKernels of[3];  ///< f64, f32, bf16
};

/// Attention that computes in f64, or in f32 and widens bf16.
MINDPIPE_DECLARE_KERNELS(AttentionByType, attention_kernels)

/// Attention of a few queries, as in generation, which reads each key once. It has no backward.
MINDPIPE_DECLARE_KERNELS(AttentionByType, few_attention_kernels)
constexpr std::int64_t few_queries = 4;
inline bool is_few(const AttentionCall& call) { return call.queries <= few_queries && call.threshold == 0; }

/// Attention in bf16 with products of pairs (Isa::avx512_bf16), and with products of tiles (Isa::avx512_amx).
namespace avx512 {
extern const AttentionKernels pair_attention_kernels, amx_attention_kernels;
}

}  // namespace mindpipe
