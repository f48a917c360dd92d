#pragma once
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "state/stage.h"
#include "supernet/subnet.h"

namespace mindpipe {

/// Who reads units: a step, or a subnet.
using Reader = std::int64_t;

/// Which units each reader uses, and which version of them is due to it: as many updates as older readers use
/// the unit.
class Readers {
 public:
  explicit Readers(const Stage& stage) : stage_(stage), users_(stage.model().units().size(), 0) {}

  /// Forgets all readers. `users`: how many have used each unit so far.
  void begin(std::vector<std::int64_t> users);
  /// Hears of a subnet before anything of it begins, and of all before it in order.
  void know(const Subnet& subnet);
  /// Hears what steps use, whatever the versions.
  void know_steps(std::vector<UnitUse> uses) { steps_.uses = std::move(uses); }
  /// Forgets all readers below `end`.
  void forget(Reader end) { readers_.erase(readers_.begin(), readers_.lower_bound(end)); }

  /// The uses that a reader makes in blocks [first, last) of units which subnets do not share, block by
  /// block.
  std::span<const UnitUse> uses(Reader reader, int first, int last) const;
  /// The version that is due to a reader; behind the last one that is known, what all of them leave.
  std::int64_t due(Reader reader, int unit) const;
  /// Whether a reader is known that has to find the version that is due.
  bool awaits(Reader reader) const { return readers_.contains(reader); }

 private:
  struct Known {
    std::vector<UnitUse> uses = {};      ///< block by block
    std::vector<std::int64_t> due = {};  ///< the version of each
  };

  const Stage& stage_;
  std::vector<std::int64_t> users_;  ///< users of each unit, as far as subnets are known
  std::map<Reader, Known> readers_;  ///< in this lane
  Known steps_;
};

}  // namespace mindpipe
