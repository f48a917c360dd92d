#pragma once
#include <map>
#include <vector>

#include "program/check/reading.h"

namespace mindpipe {

/// Follows the gradients of a step to the updated values: that of every use of a unit is made, summed over
/// data and exchanged with the unit's other homes; then the step's scalars are summed, and each unit is
/// updated once, between the fetch and the eviction of its state where that is kept on the host. Where uses
/// take turns in slabs, none is written while a sum may read it. Values in shares are gathered once, before
/// the update.
class StepBook {
 public:
  /// `slabs`: where each use's gradient is added up, where gradients are sharded.
  StepBook(Reading& reading, std::map<UnitUse, int> slabs);
  void see();
  void end();

 private:
  /// How far a use's gradient has come; of parts the newest.
  struct Use {
    bool is_begun = false;
    int made = 0;  ///< micro-batches
    ListEntry last_backward, reduced;
    bool is_whole = false;                    ///< whether all parts of the sum over data were seen
    std::map<int, ListEntry> exchanged = {};  ///< with peers, once all parts are
  };
  /// How far a unit has come.
  struct Unit {
    ListEntry updated, fetched, evicted;
    bool is_gathered = false;
  };
  /// Whose gradient is in a slab, and whether this rank's share of its sum moves out.
  struct Slab {
    UnitUse use{-1, -1};
    bool moves_out = false;
  };

  void adds(const UnitUse& use);
  void enters_slab(const UnitUse& use, int number);
  void reduce();
  void reduces_slab(const UnitUse& use);
  void exchange();
  void sum_scalar();
  void require_sum(const UnitUse& use);
  void update();
  void gather();
  void fetch();
  void evict();
  bool is_home(int unit) const;

  Reading& reading_;
  std::map<UnitUse, int> slab_of_;
  std::vector<std::vector<UnitUse>> uses_of_block_;
  std::map<UnitUse, Use> uses_;
  std::map<int, Unit> units_;
  std::map<int, Slab> slabs_;
  std::vector<ListEntry> scalars_;
  std::vector<int> fetched_;  ///< units, in the order of fetches
};

}  // namespace mindpipe
