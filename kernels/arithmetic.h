#pragma once
#include "operations/attention.h"
#include "operations/batch_norm.h"
#include "operations/classifier.h"
#include "operations/convolution.h"
#include "operations/embedding.h"
#include "operations/integers.h"
#include "operations/picks.h"
#include "operations/pictures.h"
#include "operations/pixels.h"
#include "operations/products.h"
#include "operations/rows.h"
#include "operations/updates.h"

/// Every operation by its name and its operands, which stand in operations/ with the formula. Whoever has a
/// method for each of them writes MINDPIPE_OPERATIONS(each), where each(name, Operands) declares one. A new
/// operation is its operands, a line below, a method in each of cpu/, cuda/, emulated/, and a test.
#define MINDPIPE_OPERATIONS(each) MINDPIPE_LIBRARY_OPERATIONS(each) MINDPIPE_OWN_OPERATIONS(each)

// clang-format off
/// What a device's own library may do: products and attention.
#define MINDPIPE_LIBRARY_OPERATIONS(each) \
  each(linear, LinearOperands)                               \
  each(linear_backward_input, LinearBackwardInputOperands)   \
  each(linear_backward_weight, LinearBackwardWeightOperands) \
  each(attention, AttentionOperands)                         \
  each(attention_backward, AttentionBackwardOperands)

/// What kernels of our own do on every device.
#define MINDPIPE_OWN_OPERATIONS(each) \
  each(swiglu, SwigluOperands)                                   \
  each(swiglu_backward, SwigluBackwardOperands)                  \
  each(activation_backward, ActivationBackwardOperands)          \
  each(scale, ScaleOperands)                                     \
  each(gate, GateOperands)                                       \
  each(gate_backward, GateBackwardOperands)                      \
  each(activation, ActivationOperands)                           \
  each(clear_padding, ClearPaddingOperands)                      \
  each(pad_columns, PadColumnsOperands)                          \
  each(cut_columns, CutColumnsOperands)                          \
  each(multiply_columns, MultiplyColumnsOperands)                \
  each(depthwise, DepthwiseOperands)                             \
  each(depthwise_backward_input, DepthwiseBackwardInputOperands) \
  each(depthwise_backward_weight, DepthwiseBackwardWeightOperands) \
  each(row_neighbours, RowNeighboursOperands)                    \
  each(row_neighbours_backward, RowNeighboursBackwardOperands)   \
  each(share_taps, ShareTapsOperands)                            \
  each(share_taps_backward, ShareTapsBackwardOperands)           \
  each(residual, ResidualOperands)                               \
  each(dropout, DropoutOperands)                                 \
  each(add, AddOperands)                                         \
  each(add_tree, AddTreeOperands)                                \
  each(maximum, MaximumOperands)                                 \
  each(accumulate, AccumulateOperands)                           \
  each(convert, ConvertOperands)                                 \
  each(fill, FillOperands)                                       \
  each(fill_of_spans, FillOfSpansOperands)                       \
  each(bias_backward, BiasBackwardOperands)                      \
  each(norm, NormOperands)                                       \
  each(residual_norm, ResidualNormOperands)                      \
  each(norm_backward_input, NormBackwardInputOperands)           \
  each(norm_backward_parameters, NormBackwardParametersOperands) \
  each(norm_backward, NormBackwardOperands)                      \
  each(rotary, RotaryOperands)                                   \
  each(embedding, EmbeddingOperands)                             \
  each(embedding_backward, EmbeddingBackwardOperands)            \
  each(add_positions, AddPositionsOperands)                      \
  each(positions_backward, PositionsBackwardOperands)            \
  each(add_sinusoids, AddSinusoidsOperands)                      \
  each(pick_rows, PickRowsOperands)                              \
  each(put_rows, PutRowsOperands)                                \
  each(patches, PatchesOperands)                                 \
  each(pixel_neighbours, PixelNeighboursOperands)                \
  each(pixel_neighbours_backward, PixelNeighboursBackwardOperands) \
  each(pixel_depthwise, PixelDepthwiseOperands)                  \
  each(pixel_depthwise_backward_input, PixelDepthwiseBackwardInputOperands) \
  each(pixel_depthwise_backward_weight, PixelDepthwiseBackwardWeightOperands) \
  each(pool, PoolOperands)                                       \
  each(pool_backward, PoolBackwardOperands)                      \
  each(global_pool, GlobalPoolOperands)                          \
  each(global_pool_backward, GlobalPoolBackwardOperands)         \
  each(transpose, TransposeOperands)                             \
  each(batch_moments, BatchMomentsOperands)                      \
  each(batch_statistics, BatchStatisticsOperands)                \
  each(batch_norm, BatchNormOperands)                            \
  each(batch_norm_backward_sums, BatchNormBackwardSumsOperands)  \
  each(batch_norm_backward_input, BatchNormBackwardInputOperands)\
  each(running_mean, RunningMeanOperands)                        \
  each(row_maximum, RowMaximumOperands)                          \
  each(softmax_sums, SoftmaxSumsOperands)                        \
  each(target_rank, TargetRankOperands)                          \
  each(count_hits, CountHitsOperands)                            \
  each(cross_entropy, CrossEntropyOperands)                      \
  each(cross_entropy_backward, CrossEntropyBackwardOperands)     \
  each(softmax_cross_entropy, SoftmaxCrossEntropyOperands)       \
  each(add_as_integers, AddAsIntegersOperands)                   \
  each(from_integers, FromIntegersOperands)                      \
  each(sum_squares, SumSquaresOperands)                          \
  each(sum_squares_of_spans, SumSquaresOfSpansOperands)          \
  each(sum_spans, SumSpansOperands)                              \
  each(clip_and_scale, ClipAndScaleOperands)                     \
  each(adamw, AdamWOperands)                                     \
  each(adamw_of_spans, AdamWOfSpansOperands)                     \
  each(sgd, SgdOperands)                                         \
  each(sgd_of_spans, SgdOfSpansOperands)
// clang-format on

/// Whether an operation is several others in turn, which a device may do in one pass.
template <class Operands>
concept OperationsInTurn = requires(const Operands& operands) {
  operands.in_turn([](const char*, const auto&) {});
};

/// For MINDPIPE_OPERATIONS: a method that checks its operands, does what `run` says, and ends with `done`.
#define MINDPIPE_OVERRIDE(name, Operands)        \
  void name(const Operands& operands) override { \
    check(operands);                             \
    run(operands);                               \
    done(#name);                                 \
  }                                              \
  void run(const Operands& operands);

namespace mindpipe {

/// Every operation that a layer or an optimizer may ask for, as backend.add({a, b, sum}). Operands are
/// contiguous views; x, y, dx, dy have the compute dtype (f32, bf16, or f64 in gradient checks), parameter
/// gradients and statistics are f32 (f64 when the compute dtype is f64). Outputs are written, except
/// parameter gradients, which are added to (+=). Every output element is a pure function of its operands: not
/// of threads, addresses, or of the rows beside it (bits of a tile alone = bits inside the whole). Outputs
/// may not overlap inputs unless the operands say so.
class Arithmetic {
 public:
  virtual ~Arithmetic() = default;
#define MINDPIPE_PURE(name, Operands) virtual void name(const Operands& operands) = 0;
  MINDPIPE_OPERATIONS(MINDPIPE_PURE)
#undef MINDPIPE_PURE
  /// How many elements are NaN or infinite, by bit test; waits for the answer.
  virtual std::int64_t count_not_finite(const Tensor& x) = 0;
  /// The sum of element_hash over all elements (f64, f32, or bf16 widened to f32): equal bits, equal hash, on
  /// every device. Waits for the answer too.
  virtual std::uint64_t hash(const Tensor& x) = 0;

 protected:
  /// Refuses operands that do not fit; those with checked() are refused where a kernel is told what it finds.
  template <class Operands>
  static void check(const Operands& operands) {
    if constexpr (requires { operands.check(); }) operands.check();
  }
};

}  // namespace mindpipe
