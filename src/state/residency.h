#pragma once
#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "state/fetched_states.h"
#include "state/gradient_slabs.h"
#include "state/unit_moves.h"
#include "state/unit_values.h"

namespace mindpipe {

/// The states, by name: what a run keeps of each element of its parameters, the value and what the optimizer
/// adds to it.
std::vector<std::string_view> state_names(const TrainConfig& train, const OptimizerConfig& optimizer);
/// The state that has the exact weights: masters, where values are rounded.
inline std::string_view state_of_weights(const std::vector<std::string_view>& states) {
  return std::find(states.begin(), states.end(), "master") == states.end() ? "value" : "master";
}

/// What a rank keeps of its units: values alone, what steps take besides, or what subnets do.
struct ResidencyPlan {
  enum Keeps : std::uint8_t { values, steps, subnets } keeps = values;
  const RankMemory* placed = nullptr;  ///< where a step's accumulators take turns
  Memory* host = nullptr;              ///< where masters and moments are kept; null: on the device
  int slabs = 0;                       ///< subnets: rooms for the accumulators of one subnet each
  std::size_t slab = 0;                ///< bytes of one
  int ways = 0;                        ///< to other ranks, or from them, by which units travel
  std::size_t way = 0;                 ///< bytes of a part of what travels there
  std::int64_t window = 1;             ///< subnets that read one version of what all share
  bool in_order = false;               ///< whether each reader finds a unit as all older ones have left it
  bool own_cuts = false;               ///< whether units may be at other stages than their homes
};

/// The owner of where a rank's units and their state are, and in which version: values, accumulators, this
/// rank's share of masters and moments, what travels to other ranks and from them, and what is due to whom.
class Residency {
 public:
  Residency(Stage& stage, const TrainConfig& train, const OptimizerConfig& optimizer, Groups groups);
  /// Takes all memory.
  void allocate(const ResidencyPlan& plan);
  /// Takes memory for what comes in a step that moves blocks, by this rank's list, before that begins. Until
  /// the step has ended the units are of the old home, too.
  void await(const std::vector<Action>& list);
  /// Goes on with the units that the stage has now: gives the memory of others back, and takes what they need
  /// that are new. Between two steps.
  void take_units(const RankMemory& placed);
  /// Hears that a step has ended, in which every unit was updated once, here or elsewhere.
  void ended_step();

  UnitValues& values() { return values_; }
  GradientSlabs& gradients() { return gradients_; }
  Readers& readers() { return readers_; }
  FetchedStates& fetched() { return fetched_; }
  /// This rank's share of a unit's masters and moments.
  UnitOptimizer& share(int unit) const { return *shares_.at(unit); }
  const Optimizers& shares() const { return shares_; }
  bool is_sharded() const { return is_sharded_; }
  /// What is kept of each element, as state_names says.
  const std::vector<std::string_view>& state_names() const { return state_names_; }
  /// Hears that an update has moved a unit's values on; where masters are sharded, this rank's share of them.
  void updated(int unit);
  /// Hears that a unit's values are brought together.
  void gathered(int unit) { in_shares_[static_cast<std::size_t>(unit)] = 0; }
  /// The part of a unit's newest values that this rank updates.
  Tensor own_values(int unit) const;
  /// Whether this rank has all of a unit's newest values.
  bool is_whole(int unit) const { return in_shares_[static_cast<std::size_t>(unit)] == 0; }
  /// Makes sure that whoever reads a unit's values finds them whole.
  void require_whole(int unit) const;
  /// What this rank has of a state by name: the newest values, those a window older, a master, a moment.
  Tensor newest(int unit, std::string_view state) const;
  /// The decisions that count how often gradients were applied; null: there are none.
  void count_by(Decisions& decisions) { decisions_ = &decisions; }
  Decisions* decisions() const { return decisions_; }

  /// Begins before subnet `first`, at a drain and where a window begins, with the newest values: units were
  /// used as often as their versions at home say. Collective over the pipeline, where they have several.
  void begin(Reader first);
  /// Makes sure that a reader finds the version that is due of each unit that it uses in blocks [first,
  /// last).
  void require_due(Reader reader, int first, int last) const;
  void require_due(Reader reader, int unit, std::int64_t found, std::int64_t due) const;

  /// Where a part of a message of units' states lies on its way: of one that leaves, filled.
  Tensor part(const Action& move) { return moves_.part_of(move); }
  /// Takes what a part has brought. The host may be ahead of the device: with the last part it counts on the
  /// version that is due.
  void ended(const Action& move);
  const UnitMoves::Sent& sent() const { return moves_.sent(); }
  /// A unit that has come for a reader, with the version that is due and the one that it had where it came
  /// from (f64).
  struct Arrival {
    Reader reader = 0;
    int unit = 0;
    std::int64_t due = 0;
    Tensor version = {};
  };
  /// Arrivals that were not asked for before; at a drain those of all readers, as units have come home.
  std::vector<Arrival> take_arrivals(Reader reader);
  std::vector<Arrival> take_arrivals() { return std::exchange(arrivals_, {}); }

 private:
  UnitOptimizer& make_share(int unit);

  Stage& stage_;
  Communicator& pipeline_;
  OptimizerConfig optimizer_;
  std::vector<std::string_view> state_names_;
  int data_rank_, data_ranks_;
  bool is_sharded_, in_order_ = false, own_cuts_ = false;
  Optimizers shares_;
  UnitValues values_;
  GradientSlabs gradients_;
  Readers readers_;
  UnitMoves moves_;
  FetchedStates fetched_;
  std::vector<char> in_shares_;  ///< by unit
  std::vector<char> updated_;    ///< by unit: in the step under way, here
  Decisions* decisions_ = nullptr;
  std::vector<Arrival> arrivals_;
};

}  // namespace mindpipe
