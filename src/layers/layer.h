#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "backend.h"
#include "comm/communicator.h"
#include "layers/tape.h"
#include "layers/unit.h"

namespace mindpipe {

class Norm;

/// What crosses a block or a stage: a small fixed set of tensors. A stage's cut sends those that are there.
struct Boundary {
  Tensor activation;      ///< [samples, rows, width]
  Tensor encoder_output;  ///< gradient: f32, grows from the last reader to the first
  Tensor normed = {};     ///< the activation behind the next block's norm, if made here; never crosses a cut
};

/// What every layer of a model is built with.
struct LayerContext {
  Backend& backend;
  Communicator& tensor;            ///< the tensor group; it may have one member
  DType dtype = DType::f32;        ///< type of values and activations
  bool sequence_parallel = false;  ///< `rows` layers see a part of the sequence
  std::uint64_t seed = 0;
  bool wants_many_rows = false;  ///< whether the device is fast with products of many rows only

  /// Whether outputs of norms are kept for a backward instead of made again: on such a device a pass over
  /// memory is long beside products.
  bool keeps_norms() const { return wants_many_rows; }
};

/// A step of a model: a boundary in, a boundary out. Written once, for every layout.
/// backward writes the gradient of its input over the gradient it was given (a residual stream is one buffer)
/// and adds (+=) to its parameters' gradients. It keeps no activations: they go on the tape.
class Layer {
 public:
  virtual ~Layer() = default;
  /// The norm that forward begins with for this tape's micro-batch, if the block before may run it along with
  /// its own sum. All norms of a stage go to one place: a forward has read its own when it makes the next
  /// one's.
  virtual Norm* opening_norm(const Tape& tape) {
    static_cast<void>(tape);
    return nullptr;
  }
  /// The fields of the batch that it reads.
  virtual std::vector<std::string_view> reads() const { return {}; }
  /// Bytes of what it keeps of earlier rows while texts are continued: keys and values, rows still seen.
  virtual std::size_t cache_bytes(std::int64_t samples) const {
    static_cast<void>(samples);
    return 0;
  }
  /// Whether its forward can be computed again from its input, to save what it keeps.
  virtual bool can_be_recomputed() const { return false; }
  /// Lets each layer that it chooses from be recomputed, where that can be.
  virtual void recompute_candidates() {}
  /// Bytes that its batch norms collect of a network of a supernet (NetworkStatistics).
  virtual std::size_t statistics_bytes() const { return 0; }
  virtual Boundary forward(Boundary in, Tape& tape) = 0;
  virtual Boundary backward(Boundary dout, Tape& tape) = 0;
};

/// The rows of the whole sequence that a `rows` layer sees, of a tensor [samples, rows, width].
SequencePart sequence_part_of(const LayerContext& context, const Tensor& x);

/// How many of `rows` rows of the whole sequence a `rows` layer sees.
inline std::int64_t rows_here(const LayerContext& context, std::int64_t rows) {
  return context.sequence_parallel ? rows / context.tensor.size() : rows;
}

/// Goes from rows to whole before a product that is split by `out`: gathers the sequence where it is cut.
Tensor enter(const LayerContext& context, const Tensor& x, Tape& tape);
/// What `enter` does, for a gradient, which nobody needs when the layer is done.
Tensor enter_gradient(const LayerContext& context, const Tensor& dy, Tape& tape);
/// Goes from shards [local][samples, sequence, width] after a split by `in` to rows of their sum: one tree.
Tensor leave(const LayerContext& context, const Tensor& shards, Tape& tape);

/// Copies this rank's rows of each sample to where they stay.
void take_own_rows(const LayerContext& context, const Tensor& whole, const Tensor& own);
/// Goes from whole [samples, sequence, width] to rows where every tensor rank has computed all of it alike:
/// a rank's own rows, without a sum. For a gradient too.
Tensor own_rows(const LayerContext& context, const Tensor& whole, Tape& tape);

/// The part that is all: of a tensor that holds all rows, whatever a `rows` layer sees.
inline SequencePart whole_sequences_of(const Tensor& x) { return {x.shape[0], x.shape[1], 0, x.shape[1]}; }

/// Samples [first, first + count) of [samples, rows, columns].
inline Tensor samples_of(const Tensor& x, std::int64_t first, std::int64_t count) {
  const std::int64_t rows = x.shape[1];
  return x.row_range(first * rows, count * rows).reshaped({count, rows, x.shape[2]});
}

/// Randomness of one place in the model.
Dropout dropout_at(const LayerContext& context, double probability, std::uint64_t purpose, const Tape& tape);

}  // namespace mindpipe
