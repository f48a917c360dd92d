#pragma once
#include <cstdint>
#include <vector>

#include "backend.h"
#include "core/field.h"
#include "core/memory.h"
#include "layers/row_caches.h"
#include "layers/statistics.h"
#include "layers/tape_segments.h"
#include "layers/unit.h"

namespace mindpipe {

class Norm;

/// What a micro-batch brings from outside: the fields that the blocks of a stage read.
struct MicroBatch {
  FieldTensors fields;  ///< [samples, extents of the field]
  std::int64_t samples = 0;
  std::int64_t first_sample = 0;  ///< in the step's batch: the key of its randomness
  std::int64_t step = 0;
  const std::uint8_t* choice = nullptr;  ///< supernet: each block's candidate; none: a block has one
  /// Micro-batches of calibration that the batch norms of a supernet's network have seen so far.
  std::int64_t calibrated = 0;
};

/// What one micro-batch keeps between forward and backward: last in, first out, empty afterwards.
class Tape {
 public:
  /// train: keep and save. discard: a recomputed block's first pass, nothing is saved.
  /// evaluate: nothing is saved or dropped. generate: evaluate, with caches of earlier rows. calibrate:
  /// evaluate without losses; batch norms norm as in training, and collect what evaluations of the same
  /// network norm with.
  enum class Mode : std::uint8_t { train, discard, evaluate, generate, calibrate };
  enum class WeightGradients : std::uint8_t { now, later };

  /// `memory_of_caches`: where generation keeps what it has of earlier rows; others need none.
  Tape(Backend& backend, Arena& kept, Arena& scratch, Arena* memory_of_caches = nullptr)
      : caches(memory_of_caches), backend_(backend), segments_(kept), scratch_(scratch) {}

  Mode mode = Mode::train;
  WeightGradients weight_gradients = WeightGradients::now;
  MicroBatch batch;
  Norm* next_norm = nullptr;  ///< reads the block's output next, here: a sum may be normed in the same pass
  Tensor next_normed = {};    ///< memory for what next_norm gives: it outlives the block
  double loss_factor = 1;     ///< the constant a backward starts from
  Tensor losses;              ///< f32 (f64 in gradient checks) [samples, targets]: written by the head
  Tensor hits = {};           ///< evaluate, unless none: f64 [Hits::places], which the head adds to
  Tensor logits;  ///< generate: f32 [samples, vocabulary of this rank's shards] of the last position
  std::int64_t position = 0;                ///< generate: of the first row
  NetworkStatistics* statistics = nullptr;  ///< calibrated supernet: sums of its batch norms
  RowCaches caches;                         ///< generate: of layers

  bool saves() const { return mode == Mode::train; }
  /// Whether something is trained, so that dropout drops.
  bool trains() const { return saves() || mode == Mode::discard; }
  /// A tensor for what backward (or a later layer's backward) reads.
  Tensor keep(const Shape& shape, DType dtype) {
    return saves() ? segments_.take(shape, dtype) : scratch_.take(shape, dtype);
  }
  /// A block's output: it outlives the block, also where the block saves nothing.
  Tensor output(const Shape& shape, DType dtype) { return segments_.take_output(shape, dtype); }
  /// A block's output that many blocks read, wherever the segments of these are.
  Tensor output_for_all(const Shape& shape, DType dtype) {
    return segments_.take_in(TapeSegments::own_room, shape, dtype);
  }
  /// A tensor that is given back when the enclosing Scope ends.
  Tensor scratch(const Shape& shape, DType dtype) { return scratch_.take(shape, dtype); }

  /// Where the tape lies.
  TapeSegments& segments() { return segments_; }
  /// A tensor that a backward makes again as an operand of weight gradients, which may be put off.
  Tensor made_again(const Shape& shape, DType dtype) {
    return weight_gradients == WeightGradients::later ? segments_.take(shape, dtype)
                                                      : scratch_.take(shape, dtype);
  }
  /// Tells a backward's tape that no layer reads `t` any more: a gradient that has to wait for its product
  /// may take its place, unless another product that was put off reads it.
  void gives_up(const Tensor& t);
  /// A gradient where it lasts until its products are run: itself, if they run at once.
  Tensor lasting(const Tensor& dy);

  void save(const Tensor& t);
  /// What was saved last; where it was a norm's in scratch, made again.
  Tensor restore();
  /// Tells that `y`, where it lies in scratch, is what `norm` gives of `x` with `statistics`, which are kept:
  /// so y may be saved although its scratch goes.
  void can_make_again(const Tensor& y, const Norm& norm, const Tensor& x, const Tensor& statistics);
  /// What `restore` would give after `above` other ones, before a later layer's backward has run.
  Tensor peek(std::size_t above) const;
  std::size_t saved() const { return saved_.size(); }

  /// dw += dy^T x, now or in run_weight_gradients(); in either case in the order of handing. A dy that
  /// several products read is asked for once by lasting().
  void weight_gradient(const Tensor& dy, const Tensor& x, const Param& param, int shard);
  /// The products that were put off, in order: all of them, or those of some units.
  void run_weight_gradients(const std::vector<const Unit*>& units = {});

  /// Forgets everything but caches: the micro-batch is done, or given up.
  void clear();

  /// Gives back the scratch taken in its lifetime.
  class Scope {
   public:
    explicit Scope(Tape& tape) : tape_(tape), mark_(tape.scratch_.mark()) {}
    Scope(const Scope&) = delete;
    ~Scope() { tape_.release_scratch(mark_); }

   private:
    Tape& tape_;
    std::size_t mark_;
  };

 private:
  using Place = TapeSegments::Place;
  struct OfNorm {
    const Norm* norm = nullptr;
    Place x, statistics;
  };
  struct Saved {
    Place place;     ///< nowhere for a norm's output that is made again: shape and type alone
    OfNorm of_norm;  ///< whose output it was, if that is made again
  };
  struct InScratch {
    std::size_t offset;
    OfNorm of_norm;
  };
  struct Product {
    Place dy, x;
    Param param;
    int shard;
  };
  /// A piece of the tape that nobody reads any more.
  struct GivenUp {
    int segment = 0;
    std::size_t offset = 0, bytes = 0;
  };
  void release_scratch(std::size_t mark);

  Backend& backend_;
  TapeSegments segments_;
  Arena& scratch_;
  std::vector<GivenUp> given_up_;
  std::vector<Saved> saved_;
  std::vector<InScratch> in_scratch_;  ///< what can be made again
  std::vector<Product> products_;
};

}  // namespace mindpipe
