#include "operations/attention.h"
#include "cuda/cuda_backend.h"
#include "cuda/device/attention_f64.h"
#include "cuda/device/flash.h"
#include "cuda/device/padding.h"
#include "cuda/error.h"

namespace mindpipe {
namespace {

constexpr std::int64_t widest_head = 256, most_in_grid = 65535;

/// What our tiled kernels cannot answer.
void require_possible(const AttentionCall& call) {
  MP_REQUIRE(call.width <= widest_head, Exit::bad_configuration,
             "cuda: heads of width {} (at most {}); take more heads, or set device.kind=cpu", call.width,
             widest_head);
  MP_REQUIRE(
      call.samples <= most_in_grid && call.query_heads <= most_in_grid, Exit::bad_configuration,
      "cuda: attention of {} samples with {} heads (at most {} of each); take a smaller train.micro_batch",
      call.samples, call.query_heads, most_in_grid);
}

}  // namespace

/// Which kernel answers is a function of the operands and of cuDNN's version, not of times or addresses.
void CudaBackend::attend(const AttentionCall& call, DType dtype, bool backward) {
  const bool bf16 = dtype == DType::bf16;
  if (dtype == DType::f64)
    return (backward ? cuda::attention_backward_f64 : cuda::attention_f64)(call, stream());
  require_possible(call);
  const bool answered =
      fused_attention_ && is_planned(call, dtype) &&
      (backward ? fused_attention_->backward(call, stream()) : fused_attention_->forward(call, stream()));
  if (answered && call.key_lengths != nullptr)
    (backward ? cuda::clear_padded_gradients : cuda::clear_empty_rows)(call, stream());
  if (answered) return;
  if (backward) MP_CUDA(cuda::flash_backward(call, bf16, stream()));
  else MP_CUDA(cuda::flash_forward(call, bf16, stream()));
}

void CudaBackend::run(const AttentionOperands& o) { attend(o.checked(), o.q.data.dtype, false); }

void CudaBackend::run(const AttentionBackwardOperands& o) { attend(o.checked(), o.q.data.dtype, true); }

}  // namespace mindpipe
