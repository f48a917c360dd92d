#pragma once
#include <memory>

#include "emulated/emulated_backend.h"
#include "program/outline.h"
#include "runtime/stage.h"

namespace mindpipe {

/// A model on paper: its blocks priced and its memory counted, without allocating, for any rank of any grid.
class Measure {
 public:
  Measure(const Config& config, const Layout& layout);

  struct Room {
    std::size_t kept = 0, scratch = 0;
  };
  /// What a range of blocks keeps for one micro-batch, and the scratch that its passes need.
  Room room(int first, int last);
  /// Evaluation: outputs of all blocks in `kept`.
  Room evaluation_room(int first, int last);

  /// Costs of every block, what crosses every cut, tied tables: what schedules and the simulator read. Times are the device's.
  Outline outline();
  /// Every product of a micro-batch's forward and backward, each once: what `doctor --tune` tunes.
  std::vector<ProductCall> products();
  double operations_per_token();  ///< forward and backward, counted

  Model& model() { return stage_->model(); }
  Stage& stage() { return *stage_; }

 private:
  struct Pass {
    double forward = 0, backward = 0, backward_input = 0, backward_weight = 0;
    Room room;
  };
  Pass pass(int first, int last, Tape::WeightGradients weight_gradients, bool with_copy_in);
  Tape make_tape(Arena& kept, Arena& scratch);
  Boundary boundary_before(int block, Tape& tape);

  Config config_;
  Layout layout_;
  Memory memory_;
  EmulatedBackend backend_;
  Communicator tensor_;
  std::unique_ptr<Stage> stage_;
};

}  // namespace mindpipe
