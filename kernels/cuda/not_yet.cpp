#include "cuda/cuda_backend.h"

/// Operations that CUDA does not have yet: asked for, they end the run with a sentence.
namespace mindpipe {

#define MINDPIPE_NOT_YET(name) fail(Exit::bad_configuration, "cuda: " name " is not there yet; set device.kind=cpu")

void CudaBackend::linear(const Tensor&, const Tensor&, const Tensor&, Activation, const Tensor&, const Tensor&) { MINDPIPE_NOT_YET("linear"); }
void CudaBackend::linear_backward_input(const Tensor&, const Tensor&, Activation, const Tensor&, const Tensor&) { MINDPIPE_NOT_YET("linear_backward_input"); }
void CudaBackend::linear_backward_weight(const Tensor&, const Tensor&, const Tensor&) { MINDPIPE_NOT_YET("linear_backward_weight"); }
void CudaBackend::bias_backward(const Tensor&, const Tensor&) { MINDPIPE_NOT_YET("bias_backward"); }
void CudaBackend::swiglu(const Tensor&, const Tensor&) { MINDPIPE_NOT_YET("swiglu"); }
void CudaBackend::swiglu_backward(const Tensor&, const Tensor&, const Tensor&) { MINDPIPE_NOT_YET("swiglu_backward"); }
void CudaBackend::residual(const Tensor&, const Tensor&, const Tensor&, const Dropout&, const Window&, const Tensor&) { MINDPIPE_NOT_YET("residual"); }
void CudaBackend::dropout(const Tensor&, const Dropout&, const Window&, const Tensor&) { MINDPIPE_NOT_YET("dropout"); }
void CudaBackend::add(const Tensor&, const Tensor&, const Tensor&) { MINDPIPE_NOT_YET("add"); }
void CudaBackend::accumulate(const Tensor&, const Tensor&) { MINDPIPE_NOT_YET("accumulate"); }
void CudaBackend::convert(const Tensor&, const Tensor&) { MINDPIPE_NOT_YET("convert"); }
void CudaBackend::fill(const Tensor&, double) { MINDPIPE_NOT_YET("fill"); }
void CudaBackend::norm(NormKind, const Tensor&, const Tensor&, const Tensor&, double, const Tensor&, const Tensor&) { MINDPIPE_NOT_YET("norm"); }
void CudaBackend::residual_norm(const Tensor&, const Tensor&, const Tensor&, const Dropout&, const Window&, const Tensor&, NormKind, const Tensor&, const Tensor&, double, const Tensor&, const Tensor&) { MINDPIPE_NOT_YET("residual_norm"); }
void CudaBackend::norm_backward_input(NormKind, const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&) { MINDPIPE_NOT_YET("norm_backward_input"); }
void CudaBackend::norm_backward_parameters(NormKind, const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&) { MINDPIPE_NOT_YET("norm_backward_parameters"); }
void CudaBackend::rotary(const Heads&, double, std::int64_t, bool) { MINDPIPE_NOT_YET("rotary"); }
void CudaBackend::embedding(const Tensor&, const Tensor&, std::int64_t, const Tensor&) { MINDPIPE_NOT_YET("embedding"); }
void CudaBackend::embedding_backward(const Tensor&, const Tensor&, std::int64_t, const Tensor&) { MINDPIPE_NOT_YET("embedding_backward"); }
void CudaBackend::add_positions(const Tensor&, const Tensor&, const Window&, std::int64_t, const Tensor&) { MINDPIPE_NOT_YET("add_positions"); }
void CudaBackend::positions_backward(const Tensor&, const Window&, std::int64_t, const Tensor&) { MINDPIPE_NOT_YET("positions_backward"); }
void CudaBackend::attention(const AttentionQuestion&, const Heads&, const Heads&, const Heads&, const Tensor&, const Tensor&) { MINDPIPE_NOT_YET("attention"); }
void CudaBackend::attention_backward(const AttentionQuestion&, const Heads&, const Heads&, const Heads&, const Tensor&, const Tensor&, const Tensor&, const Heads&, const Heads&, const Heads&) { MINDPIPE_NOT_YET("attention_backward"); }
void CudaBackend::row_maximum(const Tensor&, std::int64_t, const Tensor&) { MINDPIPE_NOT_YET("row_maximum"); }
void CudaBackend::row_sums(const Tensor&, std::int64_t, std::int64_t, const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&) { MINDPIPE_NOT_YET("row_sums"); }
void CudaBackend::cross_entropy(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, double, std::int64_t, const Tensor&) { MINDPIPE_NOT_YET("cross_entropy"); }
void CudaBackend::cross_entropy_backward(const Tensor&, std::int64_t, std::int64_t, const Tensor&, const Tensor&, const Tensor&, double, double, std::int64_t, const Tensor&) { MINDPIPE_NOT_YET("cross_entropy_backward"); }
void CudaBackend::sum_squares(const Tensor&, const Tensor&) { MINDPIPE_NOT_YET("sum_squares"); }
std::int64_t CudaBackend::count_not_finite(const Tensor&) { MINDPIPE_NOT_YET("count_not_finite"); }
void CudaBackend::adamw(const AdamW&, const UpdateScale&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&) { MINDPIPE_NOT_YET("adamw"); }
void CudaBackend::sgd(const Sgd&, const UpdateScale&, const Tensor&, const Tensor&, const Tensor&, const Tensor&) { MINDPIPE_NOT_YET("sgd"); }

#undef MINDPIPE_NOT_YET

}  // namespace mindpipe
