#pragma once
#include <cuda_runtime.h>

#include <memory>

#include "attention_views.h"
#include "core/memory.h"

namespace mindpipe::cuda {

/// What cuDNN may be asked, a pure function of the question; what it is asked it may still refuse, as a function of question, version and
/// GPU.
///   bf16; no dropout, whose mask is our function; heads of 8, 16, .. 128; at least two queries and two keys;
///   a causal mask begins in the upper left corner (as many queries as keys), or ends in the lower right one, and then there is no padding,
///   since cuDNN would let it end at each sample's length.
bool cudnn_may_answer(const AttentionCall& call, bool bf16);

/// Attention by cuDNN's graphs: one call, the first plan of its heuristic, a backward that is deterministic. A plan is made once for each
/// question and kept.
class FusedAttention {
 public:
  /// Plans that want more than this are refused: on Hopper the deterministic backward keeps the products of a whole question.
  static constexpr std::int64_t workspace_limit = std::int64_t{1} << 30;
  virtual ~FusedAttention() = default;
  virtual int version() const = 0;
  /// False where cuDNN refuses the question; nothing has been done then.
  virtual bool forward(const AttentionCall& call, cudaStream_t stream) = 0;
  virtual bool backward(const AttentionCall& call, cudaStream_t stream) = 0;
};
/// None in a build without cuDNN's frontend, and where libcudnn or libcudart cannot be opened.
std::unique_ptr<FusedAttention> make_fused_attention(Memory& memory);

}  // namespace mindpipe::cuda
