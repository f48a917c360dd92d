#include "cuda/cuda_backend.h"

/// Operations that CUDA does not have yet: asked for, they end the run with a sentence.
namespace mindpipe {

#define MINDPIPE_NOT_YET(name) fail(Exit::bad_configuration, "cuda: " name " is not there yet; set device.kind=cpu")

void CudaBackend::linear(const Tensor&, const Tensor&, const Tensor&, Activation, const Tensor&, const Tensor&) { MINDPIPE_NOT_YET("linear"); }
void CudaBackend::linear_backward_input(const Tensor&, const Tensor&, Activation, const Tensor&, const Tensor&) { MINDPIPE_NOT_YET("linear_backward_input"); }
void CudaBackend::linear_backward_weight(const Tensor&, const Tensor&, const Tensor&) { MINDPIPE_NOT_YET("linear_backward_weight"); }
void CudaBackend::attention(const AttentionQuestion&, const Heads&, const Heads&, const Heads&, const Tensor&, const Tensor&) { MINDPIPE_NOT_YET("attention"); }
void CudaBackend::attention_backward(const AttentionQuestion&, const Heads&, const Heads&, const Heads&, const Tensor&, const Tensor&, const Tensor&, const Heads&, const Heads&, const Heads&) { MINDPIPE_NOT_YET("attention_backward"); }

#undef MINDPIPE_NOT_YET

}  // namespace mindpipe
