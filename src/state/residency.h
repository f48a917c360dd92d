#pragma once
#include <algorithm>
#include <string_view>
#include <vector>

#include "state/gradient_slabs.h"
#include "state/optimizer_shares.h"
#include "state/unit_arrivals.h"
#include "state/unit_moves.h"
#include "state/unit_values.h"
#include "state/whole_values.h"

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
  WholeValues& whole() { return whole_; }
  /// What travels to other ranks and from them, and what has come.
  UnitMoves& moves() { return moves_; }
  UnitArrivals& arrivals() { return arrivals_; }
  /// Masters and moments, as far as this rank has them.
  OptimizerShares& shares() { return shares_; }
  const OptimizerShares& shares() const { return shares_; }
  /// What is kept of each element, as state_names says.
  const std::vector<std::string_view>& state_names() const { return state_names_; }
  /// Hears that an update has moved a unit's values on; where masters are sharded, this rank's share of them.
  void updated(int unit);
  /// What this rank has of a state by name: the newest values, those a window older, a master, a moment.
  Tensor newest(int unit, std::string_view state) const;
  /// The decisions that count how often gradients were applied; null: there are none.
  void count_by(Decisions& decisions) { decisions_ = &decisions; }
  Decisions* decisions() const { return decisions_; }

  /// Begins before subnet `first`, at a drain and where a window begins, with the newest values: units were
  /// used as often as their versions at home say. Collective over the pipeline, where they have several.
  void begin(Reader first);

 private:
  Stage& stage_;
  Communicator& pipeline_;
  std::vector<std::string_view> state_names_;
  bool own_cuts_ = false;
  OptimizerShares shares_;
  UnitValues values_;
  GradientSlabs gradients_;
  Readers readers_;
  UnitMoves moves_;
  UnitArrivals arrivals_;
  WholeValues whole_;
  std::vector<char> updated_;  ///< by unit: in the step under way, here
  Decisions* decisions_ = nullptr;
};

}  // namespace mindpipe
