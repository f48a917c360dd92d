#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "program/action.h"
#include "program/tape_slab.h"
#include "runtime/step_input.h"
#include "state/stage.h"

namespace mindpipe {

/// Bytes that the passes of a rank's lists work in, large enough for all lists that share them.
struct PassMemory {
  int slots = 0;
  std::size_t tape = 0;              ///< arena of each slot; 0: tapes lie in the slab
  TapeSlab slab = {};                ///< a step's tapes; a forward without backward has all of it
  std::size_t gradient = 0;          ///< gradient that arrives in a slot; 0: it arrives in a buffer
  std::vector<std::size_t> buffers;  ///< boundary buffers
  std::int64_t batches = 1;          ///< whose losses are kept at a time
  Memory* host = nullptr;            ///< where segments of swapped blocks wait
};

/// Where passes work: a slot for each micro-batch in flight, buffers for what crosses cuts, places for
/// losses. An action says which: what enters a pass, or arrives, is in the buffer that the action names, else
/// in the slot.
class PassRooms {
 public:
  struct Slot {
    Arena kept, arrived_gradient;  ///< what arrives with a forward lies where the tape begins
    std::unique_ptr<Tape> tape;
    int first = 0, last = 0;  ///< blocks of the forward
    Boundary between = {};    ///< what one piece of a pass leaves for the next
    std::size_t scratch_mark = 0;
  };

  /// `scratch`: of the compute queue.
  PassRooms(Stage& stage, const PassMemory& memory, Arena& scratch);

  Slot& slot(int number) { return slots_[number]; }
  /// Lets the tape of a pass, or of a piece of it, go on in its room of the slab: a backward behind what its
  /// forward has kept, the first half of one beside it, a swapped block in its segment.
  void open_room(const Action& pass, bool trains);
  /// A whole backward of a swapped block has read its segment for the last time.
  void close_segment(const Action& pass);
  /// Empties a pass's tape: nobody reads its room of the slab any more.
  void close_room(const Action& pass);
  /// Whence and whither the segment of a swapped block goes: to the host's memory, or back.
  std::pair<Tensor, Tensor> segment_way(const Action& action);
  /// What enters a pass; empty where that is the batch, or the loss.
  Boundary entering(const Action& pass);
  /// What leaves a pass or a message brings or takes, of which `gradient` says the direction: the boundary
  /// before block `cut` in a buffer.
  Boundary buffer(int number, int cut, bool gradient) { return take(buffers_[number], cut, gradient); }
  /// What a message that crosses a cut sends or receives.
  Tensor message(const Action& message);
  void copy(const Boundary& from, const Boundary& to) const;
  /// Names a micro-batch, its input and the place of its losses to its tape.
  void set_micro_batch(Tape& tape, const StepInput& input, int micro_batch, std::int64_t batch = 0) const;
  /// The losses of a batch in flight [micro_batches, samples, targets]; none where none are kept.
  Tensor losses_of(std::int64_t batch) const {
    return losses_ ? losses_.at(batch % losses_.shape[0]) : Tensor{};
  }

 private:
  Boundary take(Arena& arena, int cut, bool gradient) const;
  /// The number of a block's segment in its tape.
  static int segment_of(const Slot& slot, int block) {
    return TapeSegments::first_of_blocks + block - slot.first;
  }
  int lay_segment(Slot& slot, int block, int number);
  void forget_segment(Slot& slot, int segment);
  Boundary arrival(int slot, int cut, bool gradient) {
    return take(gradient ? slots_[slot].arrived_gradient : slots_[slot].kept, cut, gradient);
  }

  Stage& stage_;
  std::vector<Slot> slots_;
  TapeSlab rooms_;
  Arena slab_, host_;
  std::vector<Arena> buffers_;
  Arena losses_arena_;
  Tensor losses_;  ///< [batches in flight][micro-batches, samples, targets]
};

}  // namespace mindpipe
