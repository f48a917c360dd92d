#include "cuda/fused_attention.h"

namespace mindpipe::cuda {

bool cudnn_may_answer(const AttentionCall& call, bool bf16) {
  if (!bf16 || call.threshold != 0 || call.width % 8 != 0 || call.width > 128 || call.queries < 2 || call.keys < 2) return false;
  if (!call.causal || call.queries == call.keys) return true;
  return call.queries < call.keys && call.key_lengths == nullptr;
}

}  // namespace mindpipe::cuda
