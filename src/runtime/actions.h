#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/channel.h"
#include "comm/reduction.h"
#include "runtime/script.h"
#include "runtime/step_input.h"
#include "runtime/subnet_actions.h"
#include "state/gradient_updates.h"

namespace mindpipe {

/// What a list is fed, while it runs: a step has one input; of the subnets in flight each has its own.
using StepInputs = std::span<const StepInput>;
inline const StepInput& input_of(const Action& action, StepInputs inputs) {
  return inputs.size() == 1 ? inputs.front()
                            : inputs[static_cast<std::size_t>(action.subnet) % inputs.size()];
}

/// What a rank is wired to. Channels are none where there is one stage.
struct Wires {
  Channels* channels = nullptr;
  Reductions& reductions;
  Waiting& waiting;
};

/// Bytes that the passes of a rank work in, large enough for all its scripts.
struct PassMemory {
  std::vector<std::size_t> tapes;    ///< of each arena
  std::vector<std::size_t> buffers;  ///< boundary buffers
  std::size_t scratch = 0;           ///< of the compute queue
};

/// What an action does, whoever drives it and whatever list it stands in. Passes, updates and the sum of
/// scalars are done when `start` returns (or put into the device's queue); messages and sums over data have
/// only been begun.
class Actions {
 public:
  Actions(Stage& stage, GradientUpdates& updates, Wires wires, const PassMemory& memory);

  /// Starts an action of a script; the request names what has only been begun, or says that all is done.
  Request start(Script& script, const Action& action, const StepInput& input);
  /// Takes what a message has brought, once it has ended.
  void ended(const Script& script, const Action& action);
  /// Whether what was begun has ended, as far as the last progress saw.
  bool is_done(const Request& request) const;
  /// Whether one more sum or gather may begin beside what is under way.
  bool may_begin(const Action& action) const {
    return !is_collective(action) || wires_.reductions.may_begin(class_of(action));
  }
  /// What a list of forwards alone asks of whoever runs it, and tells it.
  struct Forwards {
    /// Brings what a forward is fed, before it.
    std::function<StepInput&(const Action& forward)> load;
    /// Hears of the last forward of a batch, on a rank that has the head, with the losses of all its
    /// micro-batches here.
    std::function<void(const Action& forward, const Tensor& losses)> told;
    std::function<void()> progress;  ///< called where messages are moved on while other work goes on
  };
  void run_forwards(Forwards forwards) { forwards_ = std::move(forwards); }
  /// Lets lists that grow be those of subnets; none: no more.
  void train_subnets(SubnetActions* subnets) { subnets_ = subnets; }
  /// Moves what has been begun.
  void progress();
  /// An action of a script as those know it who wait for it.
  static std::string describe(const Script& script, const Action& action);
  /// What was begun and has not ended, and whose share of it is missing, in words.
  std::string describe(const Script& script, const Action& action, const Request& request) const;
  /// Bytes that an action sends from here (a receive: brings). A list has the average over the data ranks.
  std::int64_t bytes_of(const Action& action) const;

  /// The compute queue's scratch: empty between two scripts' runs.
  Arena& scratch() { return scratch_; }
  /// The tape of arena `arena`, for those who run blocks themselves (generation, diagnosis).
  Tape& tape(int arena) { return *arenas_[arena].tape; }
  void set_micro_batch(Tape& tape, const StepInput& input, int micro_batch) const;

 private:
  struct TapeArena {
    Arena arena;
    std::unique_ptr<Tape> tape;
    Boundary gradient;  ///< between the pieces of one backward
    std::size_t scratch_mark = 0;
  };
  Request start_of_subnet(const Action& action, const StepInput& input);
  void forward(const Action& action, const StepInput& input);
  void forward_alone(const Action& action);
  void backward(const Script& script, const Action& action, const StepInput& input);
  void backward_weight(const Action& action);
  void fold(const Script& script, const Action& action);
  void sum_scalars(Script& script, const StepInput& input);
  Boundary buffer(int number, int cut, bool gradient);
  Tensor message_of(const Action& action);
  Tensor exchanged(const Action& action) const {
    return updates_.exchanged_part({action.unit, action.first}, action.part, action.parts);
  }
  void copy(const Boundary& from, const Boundary& to);

  Stage& stage_;
  GradientUpdates& updates_;
  Wires wires_;
  std::vector<TapeArena> arenas_;
  std::vector<Arena> buffers_;
  Arena scratch_, losses_arena_;
  Tensor losses_;
  SubnetActions* subnets_ = nullptr;
  Forwards forwards_;
};

}  // namespace mindpipe
