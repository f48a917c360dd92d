#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <vector>

#include "backend.h"
#include "core/field.h"
#include "core/memory.h"
#include "layers/statistics.h"
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

  /// `caches`: where generation keeps what it has of earlier rows; others need none.
  Tape(Backend& backend, Arena& kept, Arena& scratch, Arena* caches = nullptr)
      : backend_(backend), kept_(kept), scratch_(scratch), cache_arena_(caches) {}

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

  bool saves() const { return mode == Mode::train; }
  /// Whether something is trained, so that dropout drops.
  bool trains() const { return saves() || mode == Mode::discard; }
  /// A tensor for what backward (or a later layer's backward) reads.
  Tensor keep(const Shape& shape, DType dtype) {
    return saves() ? take_kept(shape, dtype) : scratch_.take(shape, dtype);
  }
  /// A block's output: it outlives the block, also where the block saves nothing.
  Tensor output(const Shape& shape, DType dtype) {
    return outputs_ < 0 ? take_kept(shape, dtype) : take_in(outputs_, shape, dtype);
  }
  /// A block's output that many blocks read, wherever the segments of these are.
  Tensor output_for_all(const Shape& shape, DType dtype) { return take_in(own_room, shape, dtype); }
  /// A tensor that is given back when the enclosing Scope ends.
  Tensor scratch(const Shape& shape, DType dtype) { return scratch_.take(shape, dtype); }

  /// A tape takes from segments of its arena, which it may share with other tapes: from its own room; from
  /// what lies beside that, where a backward in halves lays down what its products read (it comes later); and
  /// from one segment for each block, if any, whose part of the tape may lie elsewhere at its backward.
  enum : int { own_room = 0, beside = 1, first_of_blocks = 2 };
  /// Says how many segments there may be.
  void have_segments(int count) { segments_.resize(std::max<std::size_t>(count, segments_.size())); }
  /// Says where a segment lies from now on; what is in it has moved along.
  void lay(int segment, std::size_t begin, std::size_t end) {
    segments_[segment].begin = begin;
    segments_[segment].end = end;
  }
  /// Says that nothing is in a segment any more.
  void empty(int segment) { segments_[segment].used = 0; }
  /// Takes from this segment from now on; what the last block of the next range gives goes to segment
  /// `leaves`, -1: to the same one.
  void enter(int segment, int leaves = -1);
  /// Tells whether the next block's output is the one that leaves.
  void gives_last(bool is_last) { outputs_ = is_last ? leaves_ : -1; }
  /// What has arrived at the beginning of the arena is the micro-batch's own.
  void keep_arrived() { segments_[own_room].used = kept_.mark(); }
  /// Where a segment lies, as far as it is taken.
  std::pair<std::size_t, std::size_t> taken(int segment) const {
    return {segments_[segment].begin, segments_[segment].begin + segments_[segment].used};
  }
  /// Bytes that were ever taken of a segment.
  std::size_t most(int segment) const { return segments_[segment].most; }
  /// A tensor that a backward makes again as an operand of weight gradients, which may be put off.
  Tensor made_again(const Shape& shape, DType dtype) {
    return weight_gradients == WeightGradients::later ? take_kept(shape, dtype) : scratch_.take(shape, dtype);
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

  /// What one layer keeps of earlier rows, made at first use and kept for the whole generation.
  Tensor cache(const void* layer, const Shape& shape, DType dtype);

  std::size_t kept_mark() const { return segments_[current_].used; }
  void release_kept(std::size_t mark) { segments_[current_].used = mark; }
  /// Remembers how far the tape reaches where a block begins, last in, first out.
  void begin_block() { begins_.push_back(kept_mark()); }
  /// Gives up all that lies behind the beginning that was remembered last: blocks above have gone back. Where
  /// products were put off, which may read it, nothing is given up.
  void end_block();
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
  struct Segment {
    std::size_t begin = 0, end = std::numeric_limits<std::size_t>::max();
    std::size_t used = 0, most = 0;
  };
  struct Place {
    int segment = 0;
    std::size_t offset = 0;  ///< in the segment
    Shape shape;
    DType dtype = DType::f32;
  };
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
  Place place_of(const Tensor& t) const;
  Tensor take_kept(const Shape& shape, DType dtype) { return take_in(current_, shape, dtype); }
  Tensor take_in(int segment, const Shape& shape, DType dtype);
  void release_scratch(std::size_t mark);
  Tensor at(const Place& p) const {
    return {kept_.address_of(segments_[p.segment].begin + p.offset), p.shape, p.dtype};
  }

  Backend& backend_;
  Arena& kept_;
  Arena& scratch_;
  Arena* cache_arena_;
  std::vector<Segment> segments_ = std::vector<Segment>(first_of_blocks);
  int current_ = own_room;           ///< segment that is taken from
  int leaves_ = -1;                  ///< segment of what leaves the range of blocks; -1: the same
  int outputs_ = -1;                 ///< segment of the next output; -1: the same
  std::vector<std::size_t> begins_;  ///< where blocks that are computed again begin
  std::vector<GivenUp> given_up_;
  std::vector<Saved> saved_;
  std::vector<InScratch> in_scratch_;  ///< what can be made again
  std::vector<Product> products_;
  std::map<const void*, Tensor> caches_;
};

}  // namespace mindpipe
