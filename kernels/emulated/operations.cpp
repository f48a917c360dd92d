#include <concepts>

#include "emulated/emulated_backend.h"
#include "emulated/gpu_work.h"

/// What each operation costs on paper: its arithmetic, the memory that it moves, its dtype.
namespace mindpipe {
namespace {

struct Cost {
  double flops, read, written;
  DType dtype;
};

double size(const Tensor& t) { return static_cast<double>(t.bytes()); }
template <class... Tensors>
double moved(const Tensors&... tensors) {
  return (... + size(tensors));
}
/// Bytes of the whole scores of attention, over all heads and samples.
template <class Operands>
double scores_of(const Operands& o) {
  return static_cast<double>(o.parameters.queries) * o.parameters.keys * o.q.count * o.out.shape[0] *
         static_cast<double>(bytes_of(o.out.dtype));
}
/// Pairs of a query and a key that see each other, over all heads and samples.
template <class Operands>
double pairs_of(const Operands& o) {
  return static_cast<double>(o.parameters.queries) * o.parameters.keys * (o.parameters.causal ? 0.5 : 1) *
         o.q.count * o.out.shape[0];
}

Cost cost(const LinearOperands& o) {
  return {2.0 * o.y.count() * o.x.cols(), moved(o.x, o.w, o.bias), moved(o.before, o.y), o.x.dtype};
}
Cost cost(const LinearBackwardInputOperands& o) {
  return {2.0 * o.dx.count() * o.dy.cols(), moved(o.dy, o.w, o.before), moved(o.dx), o.dy.dtype};
}
Cost cost(const LinearBackwardWeightOperands& o) {
  return {2.0 * o.dw.count() * o.x.rows(), moved(o.dy, o.x, o.is_first ? Tensor{} : o.dw), moved(o.dw),
          o.dy.dtype};
}
Cost cost(const AttentionOperands& o) {
  return {4 * pairs_of(o) * o.out.cols(), size(o.q.data) + size(o.k.data), size(o.out), o.out.dtype};
}
Cost cost(const AttentionBackwardOperands& o) {
  return {10 * pairs_of(o) * o.out.cols(), size(o.q.data) + size(o.k.data) + size(o.out) + size(o.dout),
          size(o.q.data) + size(o.k.data), o.out.dtype};
}

Cost cost(const SwigluOperands& o) { return {0, moved(o.gate_up), moved(o.y), o.y.dtype}; }
Cost cost(const SwigluBackwardOperands& o) {
  return {0, moved(o.dy, o.gate_up), moved(o.dgate_up), o.dy.dtype};
}
Cost cost(const ActivationBackwardOperands& o) { return {0, moved(o.dy, o.before), moved(o.dx), o.dy.dtype}; }
Cost cost(const ScaleOperands& o) { return {0, moved(o.x), moved(o.y), o.y.dtype}; }
Cost cost(const GateOperands& o) { return {0, moved(o.both), moved(o.y), o.y.dtype}; }
Cost cost(const GateBackwardOperands& o) { return {0, moved(o.dy, o.both), moved(o.dboth), o.dy.dtype}; }
Cost cost(const ActivationOperands& o) { return {0, moved(o.x), moved(o.y), o.y.dtype}; }
Cost cost(const ClearPaddingOperands& o) { return {0, moved(o.x, o.lengths), moved(o.y), o.y.dtype}; }
Cost cost(const PadColumnsOperands& o) { return {0, moved(o.x, o.sum), moved(o.y), o.y.dtype}; }
Cost cost(const CutColumnsOperands& o) { return {0, moved(o.y), moved(o.y), o.y.dtype}; }
Cost cost(const MultiplyColumnsOperands& o) { return {0, moved(o.x, o.factor), moved(o.y), o.y.dtype}; }
/// A multiplication and an addition for each tap; they are no product, so f32 is what they are done in.
template <class Operands>
double taps_of(const Operands& o, const Tensor& rows) {
  return 2.0 * o.reach.taps * static_cast<double>(rows.count());
}
Cost cost(const DepthwiseOperands& o) { return {taps_of(o, o.x), moved(o.x, o.w), moved(o.y), DType::f32}; }
Cost cost(const DepthwiseBackwardInputOperands& o) {
  return {taps_of(o, o.dy), moved(o.dy, o.w), moved(o.dx), DType::f32};
}
Cost cost(const DepthwiseBackwardWeightOperands& o) {
  return {taps_of(o, o.dy), moved(o.dy, o.x, o.dw), moved(o.dw), DType::f32};
}
Cost cost(const RowNeighboursOperands& o) { return {0, moved(o.x), moved(o.y), o.y.dtype}; }
Cost cost(const RowNeighboursBackwardOperands& o) { return {0, moved(o.dy), moved(o.dx), o.dx.dtype}; }
Cost cost(const ShareTapsOperands& o) { return {0, moved(o.w), moved(o.y), o.y.dtype}; }
Cost cost(const ShareTapsBackwardOperands& o) { return {0, moved(o.dy, o.w, o.dw), moved(o.dw), o.dw.dtype}; }
Cost cost(const ResidualOperands& o) { return {0, moved(o.x, o.branch, o.bias), moved(o.y), o.y.dtype}; }
Cost cost(const DropoutOperands& o) { return {0, moved(o.x), moved(o.y), o.y.dtype}; }
Cost cost(const AddOperands& o) { return {0, moved(o.a, o.b), moved(o.sum), o.sum.dtype}; }
Cost cost(const AddTreeOperands& o) {
  return {0, static_cast<double>(o.terms.size()) * size(o.sum), size(o.sum), o.sum.dtype};
}
Cost cost(const MaximumOperands& o) { return {0, moved(o.a, o.b), moved(o.largest), o.largest.dtype}; }
Cost cost(const AccumulateOperands& o) { return {0, moved(o.part, o.total), moved(o.total), o.total.dtype}; }
Cost cost(const ConvertOperands& o) { return {0, moved(o.x), moved(o.y), o.y.dtype}; }
Cost cost(const FillOperands& o) { return {0, 0, moved(o.x), o.x.dtype}; }
Cost cost(const BiasBackwardOperands& o) {
  return {static_cast<double>(o.dy.count()), moved(o.dy), moved(o.db), DType::f32};
}

Cost cost(const NormOperands& o) { return {0, moved(o.x), moved(o.statistics, o.y), o.y.dtype}; }
Cost cost(const ResidualNormOperands& o) {
  return {0, moved(o.x, o.branch, o.bias), moved(o.y, o.statistics, o.normed), o.y.dtype};
}
Cost cost(const NormBackwardInputOperands& o) {
  return {0, moved(o.dy, o.x, o.residual), moved(o.dx), o.dy.dtype};
}
Cost cost(const NormBackwardParametersOperands& o) {
  return {0, moved(o.dy, o.x), moved(o.dgain), o.dy.dtype};
}
Cost cost(const NormBackwardOperands& o) {
  return {0, moved(o.dy, o.x, o.residual), moved(o.dx, o.dgain, o.doffset, o.dbias), o.dy.dtype};
}
Cost cost(const RotaryOperands& o) { return {0, size(o.heads.data), size(o.heads.data), o.heads.data.dtype}; }

Cost cost(const EmbeddingOperands& o) { return {0, moved(o.tokens, o.y), moved(o.y), o.y.dtype}; }
Cost cost(const EmbeddingBackwardOperands& o) {
  return {0, 2 * size(o.dy) + size(o.tokens), size(o.dy), o.dy.dtype};
}
Cost cost(const AddPositionsOperands& o) { return {0, moved(o.x, o.positions), moved(o.y), o.y.dtype}; }
Cost cost(const AddSinusoidsOperands& o) { return {0, moved(o.x), moved(o.y), o.y.dtype}; }
Cost cost(const PositionsBackwardOperands& o) { return {0, moved(o.dy), moved(o.dpositions), o.dy.dtype}; }

Cost cost(const PickRowsOperands& o) { return {0, moved(o.rows, o.y), moved(o.y), o.y.dtype}; }
Cost cost(const PutRowsOperands& o) { return {0, moved(o.dy, o.rows), moved(o.dx), o.dx.dtype}; }
Cost cost(const PatchesOperands& o) { return {0, moved(o.pictures), moved(o.y), o.y.dtype}; }
Cost cost(const PixelNeighboursOperands& o) { return {0, moved(o.x), moved(o.y), o.y.dtype}; }
Cost cost(const PixelNeighboursBackwardOperands& o) { return {0, moved(o.dy), moved(o.dx), o.dx.dtype}; }
template <class Operands>
double window_taps_of(const Operands& o, const Tensor& windows) {
  return 2.0 * o.window.taps() * static_cast<double>(windows.count());
}
Cost cost(const PixelDepthwiseOperands& o) {
  return {window_taps_of(o, o.y), moved(o.x, o.w), moved(o.y), DType::f32};
}
Cost cost(const PixelDepthwiseBackwardInputOperands& o) {
  return {window_taps_of(o, o.dy), moved(o.dy, o.w), moved(o.dx), DType::f32};
}
Cost cost(const PixelDepthwiseBackwardWeightOperands& o) {
  return {window_taps_of(o, o.dy), moved(o.dy, o.x), moved(o.parts), DType::f32};
}
Cost cost(const PoolOperands& o) { return {0, moved(o.x), moved(o.y, o.chosen), o.y.dtype}; }
Cost cost(const PoolBackwardOperands& o) { return {0, moved(o.dy, o.chosen), moved(o.dx), o.dx.dtype}; }
Cost cost(const GlobalPoolOperands& o) { return {0, moved(o.x), moved(o.y), o.y.dtype}; }
Cost cost(const GlobalPoolBackwardOperands& o) { return {0, moved(o.dy), moved(o.dx), o.dx.dtype}; }
Cost cost(const TransposeOperands& o) { return {0, moved(o.x), moved(o.y), o.y.dtype}; }
Cost cost(const BatchMomentsOperands& o) { return {0, moved(o.x), moved(o.parts), o.x.dtype}; }
Cost cost(const BatchStatisticsOperands& o) { return {0, moved(o.parts), moved(o.statistics), DType::f64}; }
Cost cost(const BatchNormOperands& o) { return {0, moved(o.x, o.statistics), moved(o.y), o.y.dtype}; }
Cost cost(const BatchNormBackwardSumsOperands& o) { return {0, moved(o.dy, o.x), moved(o.parts), o.x.dtype}; }
Cost cost(const BatchNormBackwardInputOperands& o) {
  return {0, moved(o.dy, o.x, o.residual), moved(o.dx), o.x.dtype};
}
Cost cost(const RowMaximumOperands& o) { return {0, size(o.logits), 0, DType::f32}; }
Cost cost(const SoftmaxSumsOperands& o) { return {0, size(o.logits), 0, DType::f32}; }
Cost cost(const TargetRankOperands& o) {
  return {0, moved(o.logits, o.of_target), moved(o.ranks), DType::f32};
}
Cost cost(const CountHitsOperands& o) { return {0, moved(o.targets, o.ranks), 0, DType::f32}; }
Cost cost(const CrossEntropyOperands& o) { return {0, 5 * size(o.losses), size(o.losses), DType::f32}; }
Cost cost(const CrossEntropyBackwardOperands& o) {
  return {0, moved(o.logits), moved(o.dlogits), DType::f32};
}
Cost cost(const SoftmaxCrossEntropyOperands& o) {
  return {0, size(o.logits), moved(o.losses, o.dlogits), DType::f32};
}

Cost cost(const AddAsIntegersOperands& o) {
  return {0, moved(o.gradient, o.totals), moved(o.gradient, o.totals), DType::f32};
}
Cost cost(const FromIntegersOperands& o) {
  return {0, moved(o.totals), moved(o.totals, o.gradient), DType::f32};
}
Cost cost(const SumSquaresOperands& o) { return {0, size(o.x), 0, o.x.dtype}; }
Cost cost(const SumSpansOperands& o) { return {0, moved(o.x, o.spans), moved(o.totals), DType::f64}; }
Cost cost(const ClipAndScaleOperands& o) { return {0, moved(o.sums), moved(o.decision), DType::f64}; }
Cost cost(const AdamWOperands& o) {
  return {0, size(o.gradient) + moved(o.master, o.m, o.v), moved(o.master, o.m, o.v) + size(o.value),
          DType::f32};
}
Cost cost(const RunningMeanOperands& o) {
  return {0, moved(o.sum, o.master), moved(o.master, o.value), DType::f32};
}
Cost cost(const SgdOperands& o) {
  return {0, size(o.gradient) + moved(o.master, o.velocity), moved(o.master, o.velocity) + size(o.value),
          DType::f32};
}

/// Bytes of these heads, without others that lie beside them.
double size(const Heads& heads) {
  return size(heads.data) * heads.count / static_cast<double>(heads.data.shape[2]);
}
/// A GPU is priced with the heads that it moves; other devices with the tensors that heads lie in, as their
/// planners' figures are.
Cost cost_of_heads(const AttentionOperands& o) {
  return {cost(o).flops, size(o.q) + size(o.k) + size(o.v), size(o.out), o.out.dtype};
}
Cost cost_of_heads(const AttentionBackwardOperands& o) {
  return {cost(o).flops, size(o.q) + size(o.k) + size(o.v) + size(o.out) + size(o.dout),
          size(o.dq) + size(o.dk) + size(o.dv), o.out.dtype};
}
Cost cost_of_heads(const RotaryOperands& o) { return {0, size(o.heads), size(o.heads), o.heads.data.dtype}; }

template <class Operands>
Cost cost_in_turn(const Operands& o, DType dtype) {
  Cost all{0, 0, 0, dtype};
  o.in_turn([&](const char*, const auto& part) {
    const Cost one = cost(part);
    all.read += one.read;
    all.written += one.written;
  });
  return all;
}
Cost cost(const FillOfSpansOperands& o) { return cost_in_turn(o, o.x.dtype); }
Cost cost(const SumSquaresOfSpansOperands& o) { return cost_in_turn(o, o.x.dtype); }
Cost cost(const AdamWOfSpansOperands& o) { return cost_in_turn(o, DType::f32); }
Cost cost(const SgdOfSpansOperands& o) { return cost_in_turn(o, DType::f32); }

}  // namespace

template <class Operands>
void EmulatedBackend::price(std::string_view name, const Operands& o) {
  if constexpr (OperationsInTurn<Operands>)
    if (!wants_many_rows_) return o.in_turn([this](const char* one, const auto& part) { price(one, part); });
  double slower = 1, beside = 0;
  std::optional<ProductCall> product;
  if constexpr (requires {
                  { o.checked() } -> std::same_as<ProductCall>;
                }) {
    product = o.checked();
    tell_of(*product);
    slower = 1 / device_.efficiency(static_cast<double>(product->n), static_cast<double>(product->m),
                                    static_cast<double>(product->k));
  }
  if constexpr (std::same_as<Operands, AttentionOperands>) beside = device_.attention_scores * scores_of(o);
  if constexpr (std::same_as<Operands, AttentionBackwardOperands>)
    beside = 1.3 * device_.attention_scores * scores_of(o);
  if (workspace_ != nullptr) {
    if constexpr (requires { workspace_->attention(o); }) workspace_->attention(o);
    if constexpr (requires { workspace_->attention_backward(o); }) workspace_->attention_backward(o);
    if constexpr (std::same_as<Operands, RotaryOperands>) workspace_->rotary(o.heads);
  }
  Cost spent = cost(o);
  if constexpr (requires { cost_of_heads(o); })
    if (wants_many_rows_) spent = cost_of_heads(o);
  GpuWork more = wants_many_rows_ ? gpu_work(o) : GpuWork{};
  if constexpr (std::same_as<Operands, SoftmaxCrossEntropyOperands>) more.read += read_again(o, device_);
  beside += more.read + more.written;
  const double seconds =
      spend(name, spent.flops, spent.read + spent.written, spent.dtype, slower, beside, more.kernels);
  if (told_)
    told_({name, spent.flops, spent.read + more.read, spent.written + more.written, more.kernels, seconds,
           product ? &*product : nullptr});
}

#define MINDPIPE_PRICED(name, Operands) \
  void EmulatedBackend::name(const Operands& operands) { price(#name, operands); }
MINDPIPE_OPERATIONS(MINDPIPE_PRICED)
#undef MINDPIPE_PRICED

std::int64_t EmulatedBackend::count_not_finite(const Tensor& x) {
  spend("count_not_finite", 0, size(x), x.dtype);
  return 0;
}

std::uint64_t EmulatedBackend::hash(const Tensor& x) {
  spend("hash", 0, size(x), x.dtype);
  return 0;
}

}  // namespace mindpipe
