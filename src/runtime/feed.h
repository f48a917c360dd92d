#pragma once
#include <cstdint>
#include <span>

#include "program/action.h"
#include "runtime/late_answers.h"
#include "runtime/step_input.h"
#include "state/unit_arrivals.h"

namespace mindpipe {

/// What a list is fed, while it runs: a step has one input; of the subnets in flight each has its own.
using StepInputs = std::span<const StepInput>;
inline const StepInput& input_of(const Action& action, StepInputs inputs) {
  return inputs.size() == 1 ? inputs.front()
                            : inputs[static_cast<std::size_t>(action.owner.number) % inputs.size()];
}

class KeptActions;
struct Script;

/// What runs next, and how far.
struct Turn {
  Script& script;
  StepInputs inputs;
  bool to_drain = false;  ///< until nothing of it is under way
  std::size_t left = 0;   ///< passes at its end that wait for a later turn
};

/// Whoever has a list run: brings the list on, and what its actions read, and hears what they find.
class Feed {
 public:
  virtual ~Feed() = default;
  /// Brings the list on by what may run next. Waits for others only where nothing is left to run.
  virtual Turn next() = 0;
  /// Nothing of the list is under way on the host any more.
  virtual void drained() = 0;
  /// Moves on what travels beside the list, without waiting.
  virtual void progress() {}
  /// Brings what the forwards of a subnet, or of a batch in line, read; asked before each of a batch, and
  /// before a subnet's first one here.
  virtual const StepInput& bring(const Action& forward) = 0;
  /// Where passes and updates of a training say what they see; null: nobody keeps it.
  virtual KeptActions* kept() { return nullptr; }
  /// The targets that count of a subnet's batch, which another lane runs.
  virtual std::int64_t targets_of(std::int64_t /*subnet*/) { return 0; }
  /// Hears of numbers on the device that say what an action has found, of `valid` targets that count: of a
  /// step the decision; of a subnet's update those of its units and, where the head is, the sum of its
  /// losses; of a batch in line its losses. `number`: of the step, the subnet, the batch.
  virtual void found(const Action& by, std::int64_t number, std::int64_t valid,
                     std::span<const Tensor> numbers) = 0;
  /// Hears of a unit that came for a subnet.
  virtual void came(const UnitArrivals::Arrival& /*one*/) {}
};

/// Makes sure that a unit came with the version that is due, once the device has told it.
inline void await_version(LateAnswers& answers, const UnitArrivals& arrivals,
                          const UnitArrivals::Arrival& one) {
  answers.ask({&one.version, 1}, [&arrivals, one](std::span<const double> found) {
    arrivals.require_due(one.reader, one.unit, static_cast<std::int64_t>(found[0]), one.due);
  });
}

}  // namespace mindpipe
