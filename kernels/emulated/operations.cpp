#include "emulated/emulated_backend.h"

/// What each operation costs on paper: its arithmetic, the memory that it moves, its dtype.
namespace mindpipe {
namespace {

double size(const Tensor& t) { return static_cast<double>(t.bytes()); }
template <class... Tensors>
double moved(const Tensors&... tensors) {
  return (... + size(tensors));
}
/// Pairs of a query and a key that see each other, over all heads and samples.
double pairs_of(const AttentionParameters& parameters, const Heads& q, const Tensor& out) {
  return static_cast<double>(parameters.queries) * parameters.keys * (parameters.causal ? 0.5 : 1) * q.count *
         out.shape[0];
}

}  // namespace

void EmulatedBackend::linear(const LinearOperands& o) {
  tell_of(o.checked());
  spend(2.0 * o.y.count() * o.x.cols(), moved(o.x, o.w, o.bias, o.before, o.y), o.x.dtype);
}
void EmulatedBackend::linear_backward_input(const LinearBackwardInputOperands& o) {
  tell_of(o.checked());
  spend(2.0 * o.dx.count() * o.dy.cols(), moved(o.dy, o.w, o.before, o.dx), o.dy.dtype);
}
void EmulatedBackend::linear_backward_weight(const LinearBackwardWeightOperands& o) {
  tell_of(o.checked());
  spend(2.0 * o.dw.count() * o.x.rows(), moved(o.dy, o.x, o.dw, o.dw), o.dy.dtype);
}
void EmulatedBackend::bias_backward(const BiasBackwardOperands& o) {
  spend(o.dy.count(), moved(o.dy, o.db), DType::f32);
}

void EmulatedBackend::swiglu(const SwigluOperands& o) { spend(0, moved(o.gate_up, o.y), o.y.dtype); }
void EmulatedBackend::swiglu_backward(const SwigluBackwardOperands& o) {
  spend(0, moved(o.dy, o.gate_up, o.dgate_up), o.dy.dtype);
}
void EmulatedBackend::residual(const ResidualOperands& o) {
  spend(0, moved(o.x, o.branch, o.bias, o.y), o.y.dtype);
}
void EmulatedBackend::dropout(const DropoutOperands& o) { spend(0, moved(o.x, o.y), o.y.dtype); }
void EmulatedBackend::add(const AddOperands& o) { spend(0, moved(o.a, o.b, o.sum), o.sum.dtype); }
void EmulatedBackend::maximum(const MaximumOperands& o) {
  spend(0, moved(o.a, o.b, o.largest), o.largest.dtype);
}
void EmulatedBackend::accumulate(const AccumulateOperands& o) {
  spend(0, moved(o.part, o.total, o.total), o.total.dtype);
}
void EmulatedBackend::convert(const ConvertOperands& o) { spend(0, moved(o.x, o.y), o.y.dtype); }
void EmulatedBackend::fill(const FillOperands& o) { spend(0, moved(o.x), o.x.dtype); }

void EmulatedBackend::norm(const NormOperands& o) { spend(0, moved(o.x, o.statistics, o.y), o.y.dtype); }
void EmulatedBackend::residual_norm(const ResidualNormOperands& o) {
  spend(0, moved(o.x, o.branch, o.bias, o.y, o.statistics, o.normed), o.y.dtype);
}
void EmulatedBackend::norm_backward_input(const NormBackwardInputOperands& o) {
  spend(0, moved(o.dy, o.x, o.residual, o.dx), o.dy.dtype);
}
void EmulatedBackend::norm_backward_parameters(const NormBackwardParametersOperands& o) {
  spend(0, moved(o.dy, o.x, o.dgain), o.dy.dtype);
}
void EmulatedBackend::rotary(const RotaryOperands& o) {
  if (workspace_ != nullptr) workspace_->rotary(o.heads);
  spend(0, 2 * size(o.heads.data), o.heads.data.dtype);
}

void EmulatedBackend::embedding(const EmbeddingOperands& o) {
  spend(0, moved(o.tokens, o.y, o.y), o.y.dtype);
}
void EmulatedBackend::embedding_backward(const EmbeddingBackwardOperands& o) {
  spend(0, 3 * size(o.dy) + size(o.tokens), o.dy.dtype);
}
void EmulatedBackend::add_positions(const AddPositionsOperands& o) {
  spend(0, moved(o.x, o.positions, o.y), o.y.dtype);
}
void EmulatedBackend::positions_backward(const PositionsBackwardOperands& o) {
  spend(0, moved(o.dy, o.dpositions), o.dy.dtype);
}

void EmulatedBackend::attention(const AttentionOperands& o) {
  if (workspace_ != nullptr) workspace_->attention(o);
  const double pairs = pairs_of(o.parameters, o.q, o.out);
  spend(4 * pairs * o.out.cols(), size(o.q.data) + size(o.k.data) + size(o.out), o.out.dtype);
}
void EmulatedBackend::attention_backward(const AttentionBackwardOperands& o) {
  if (workspace_ != nullptr) workspace_->attention_backward(o);
  const double pairs = pairs_of(o.parameters, o.q, o.out);
  spend(10 * pairs * o.out.cols(), 2 * (size(o.q.data) + size(o.k.data)) + size(o.out) + size(o.dout),
        o.out.dtype);
}

void EmulatedBackend::row_maximum(const RowMaximumOperands& o) { spend(0, size(o.logits), DType::f32); }
void EmulatedBackend::softmax_sums(const SoftmaxSumsOperands& o) { spend(0, size(o.logits), DType::f32); }
void EmulatedBackend::cross_entropy(const CrossEntropyOperands& o) {
  spend(0, 6 * size(o.losses), DType::f32);
}
void EmulatedBackend::cross_entropy_backward(const CrossEntropyBackwardOperands& o) {
  spend(0, moved(o.logits, o.dlogits), DType::f32);
}

void EmulatedBackend::sum_squares(const SumSquaresOperands& o) { spend(0, size(o.x), o.x.dtype); }
std::int64_t EmulatedBackend::count_not_finite(const Tensor& x) {
  spend(0, size(x), x.dtype);
  return 0;
}
void EmulatedBackend::sum_spans(const SumSpansOperands& o) {
  spend(0, moved(o.x, o.spans, o.totals), DType::f64);
}
void EmulatedBackend::clip_and_scale(const ClipAndScaleOperands& o) {
  spend(0, moved(o.sums, o.decision), DType::f64);
}
void EmulatedBackend::adamw(const AdamWOperands& o) {
  spend(0, size(o.gradient) + 2 * moved(o.master, o.m, o.v) + size(o.value), DType::f32);
}
void EmulatedBackend::sgd(const SgdOperands& o) {
  spend(0, size(o.gradient) + 2 * moved(o.master, o.velocity) + size(o.value), DType::f32);
}

}  // namespace mindpipe
