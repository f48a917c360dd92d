#pragma once
#include <vector>

#include "core/check.h"
#include "state/stage.h"

namespace mindpipe {

/// Which units' newest values are whole on a rank: where masters are sharded, an update moves this rank's
/// share of them alone, and the others' come later.
class WholeValues {
 public:
  /// `in_shares`: whether masters are sharded.
  WholeValues(Stage& stage, bool in_shares)
      : stage_(stage), in_shares_(in_shares), parts_(stage.model().units().size(), 0) {}

  /// Hears that an update has moved a unit's values on.
  void updated(int unit) { parts_[static_cast<std::size_t>(unit)] = in_shares_ ? 1 : 0; }
  /// Hears that a unit's values are brought together, or that the unit has left.
  void gathered(int unit) { parts_[static_cast<std::size_t>(unit)] = 0; }
  bool has(int unit) const { return parts_[static_cast<std::size_t>(unit)] == 0; }
  /// Makes sure that whoever reads a unit's values finds them whole.
  void require(int unit) const {
    MP_CHECK(has(unit), "the values of unit {} are read, of which this rank has a share alone",
             stage_.unit(unit).name());
  }

 private:
  Stage& stage_;
  bool in_shares_;
  std::vector<char> parts_;  ///< by unit: whether this rank has a share alone
};

}  // namespace mindpipe
