#pragma once
#include <optional>
#include <span>
#include <string>

#include "runtime/carriers.h"
#include "runtime/feed.h"
#include "runtime/pass_rooms.h"
#include "runtime/script.h"
#include "state/residency.h"
#include "state/shared_windows.h"

namespace mindpipe {

/// What a rank holds of a run.
struct RankState {
  Stage& stage;
  Residency& residency;
  GradientUpdates& updates;
  SharedWindows* windows = nullptr;  ///< null unless a supernet is trained
};

/// Bytes of the rooms in which a rank's lists work: steps share theirs with forwards, subnets have their own.
struct WorkMemory {
  PassMemory passes;
  std::optional<PassMemory> subnets = {};
  std::size_t scratch = 0;  ///< scratch of the compute queue
};

/// An action of a script as those know it who wait for it.
std::string described(const Script& script, const Action& action);

/// What an action does, whoever drives it and whatever list it stands in. Passes, updates and the sum of
/// scalars are done when `start` returns (or put into the device's queue); messages, sums over data and
/// copies have only been begun.
class Actions {
 public:
  Actions(const RankState& state, Wires wires, const WorkMemory& memory);
  /// Goes on in rooms of other sizes, between two steps; the rooms before are given back first.
  void leave_rooms() { passes_.reset(); }
  void take_rooms(const WorkMemory& memory);

  /// Starts an action of a script; the request names what has only been begun, or says that all is done.
  Request start(Script& script, const Action& action, const StepInput& input);
  /// Takes what a message or a copy has brought, once it has ended.
  void ended(const Script& script, const Action& action) {
    if (is_move(action) && script.trains()) state_.residency.arrivals().ended(action);
    if (action.kind == ActionKind::evict) state_.residency.shares().of(action.unit).leave_slot();
  }
  /// Lets a feed move on what travels beside its list wherever messages are moved on; or no more.
  void join(Feed& feed) { feeds_.push_back(&feed); }
  void leave(Feed& feed) { std::erase(feeds_, &feed); }
  /// Moves what has been begun.
  void progress();
  /// Brings together values that the newest step has left in shares (GradientSums::settle).
  void settle() { state_.updates.sums().settle(carriers_.reductions()); }
  /// Bytes that an action sends from here (a receive: brings). A list has the average over the data ranks.
  std::int64_t bytes_of(const Action& action) const;

  Carriers& carriers() { return carriers_; }
  /// The compute queue's scratch: empty between two scripts' runs.
  Arena& scratch() { return scratch_; }
  /// Where a script's passes work.
  PassRooms& rooms_of(const Script& script) { return script.trains() && subnets_ ? *subnets_ : *passes_; }

 private:
  void forward(Script& script, const Action& action, const StepInput& given);
  void backward(Script& script, const Action& action, const StepInput& input);
  void backward_weight(const Script& script, const Action& action);
  void update(Script& script, const Action& action, const StepInput& input);
  void update_subnet(const Script& script, const Action& action, const StepInput& input);
  Reductions::Request reduce(const Action& action);
  Tensor message_of(const Script& script, const Action& action);

  RankState state_;
  Carriers carriers_;
  Arena scratch_;
  std::optional<PassRooms> passes_, subnets_;
  std::vector<Feed*> feeds_;
};

}  // namespace mindpipe
