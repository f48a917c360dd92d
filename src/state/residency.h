#pragma once
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "state/gradient_updates.h"
#include "state/unit_moves.h"
#include "supernet/subnet.h"

namespace mindpipe {

/// Who reads units: a step, or a subnet.
using Reader = std::int64_t;

/// How gradients and states of a rank's units are kept.
struct ResidencyPlan {
  const RankMemory* placed = nullptr;  ///< of a step: where accumulators take turns; null: of subnets
  int slabs = 0;                       ///< of subnets: rooms for the accumulators of one each
  std::size_t slab = 0;                ///< bytes of one
  int ways = 0;                        ///< to other ranks, or from them, by which units travel
  std::size_t way = 0;                 ///< bytes of a part of what travels there
  bool in_order = false;               ///< whether each reader finds a unit as all older ones have left it
  bool travels_in_stages = false;      ///< whether units may be at other stages than their homes
};

/// Where a rank's units are and in which version: what each reader uses, which version is due to it, where
/// its gradients are added up, what travels to other ranks and from them.
class Residency {
 public:
  Residency(Stage& stage, GradientUpdates& updates, Communicator& pipeline, const ResidencyPlan& plan);

  /// Begins before subnet `first`, at a cut: units were used as often as their versions at home say.
  /// Collective over the pipeline, where units may be at other stages.
  void begin(Reader first);
  /// Hears of a subnet before anything of it begins, and of all before it in order: which version it is to
  /// find of each of its units is how many older ones use it.
  void know(const Subnet& subnet);
  /// Hears what steps use, whatever the versions.
  void know_steps(std::vector<UnitUse> uses) { steps_.uses = std::move(uses); }
  /// Forgets all readers below `end`.
  void forget(Reader end) { readers_.erase(readers_.begin(), readers_.lower_bound(end)); }

  /// The uses that a reader makes in blocks [first, last) of units which subnets do not share, block by
  /// block.
  std::span<const UnitUse> uses(Reader reader, int first, int last) const;
  /// Makes sure that a reader finds the version that is due of each unit that it uses in blocks [first,
  /// last).
  void require_due(Reader reader, int first, int last) const;
  void require_due(Reader reader, int unit, std::int64_t found, std::int64_t due) const;
  /// Lets the accumulators of a subnet's uses in blocks [first, last) lie one after the other in a slab.
  void bind(Reader reader, int first, int last, int slab);
  /// Lets those of one use lie where they were bound in a slab.
  void bind(const UnitUse& use, int slab);

  /// Where a part of a message of units' states lies on its way: of one that leaves, filled.
  Tensor part(const Action& move) { return moves_.part_of(move); }
  /// Takes what a part has brought. The host may be ahead of the device: with the last part it counts on the
  /// version that is due.
  void ended(const Action& move);
  /// A unit that has come for a reader, with the version that is due and the one that it had where it came
  /// from (f64).
  struct Arrival {
    Reader reader = 0;
    int unit = 0;
    std::int64_t due = 0;
    Tensor version = {};
  };
  /// Those that were not asked for before; at a cut of all readers, as units have come home.
  std::vector<Arrival> take_arrivals(Reader reader);
  std::vector<Arrival> take_arrivals() { return std::exchange(arrivals_, {}); }
  const UnitMoves::Sent& sent() const { return moves_.sent(); }

 private:
  struct Known {
    std::vector<UnitUse> uses = {};      ///< block by block
    std::vector<std::int64_t> due = {};  ///< the version of each; none: any will do
  };
  struct Slab {
    Arena arena;
    std::vector<std::pair<UnitUse, void*>> places = {};  ///< of accumulators that were bound here
  };
  void take_slabs(const ResidencyPlan& plan);
  void place(const UnitUse& use, Slab& slab);
  const Known& known(Reader reader) const {
    const auto found = readers_.find(reader);
    return found == readers_.end() ? steps_ : found->second;
  }
  std::int64_t due_version(Reader reader, int unit) const;

  Stage& stage_;
  Communicator& pipeline_;
  bool in_order_, travels_in_stages_;
  UnitMoves moves_;
  std::vector<Slab> slabs_;
  std::vector<std::int64_t> users_;  ///< of each unit, as far as subnets are known
  std::map<Reader, Known> readers_;
  Known steps_;
  std::vector<Arrival> arrivals_;
};

}  // namespace mindpipe
