#pragma once
#include <utility>
#include <vector>

#include "state/readers.h"

namespace mindpipe {

class Residency;

/// Units that come from other ranks for readers, and whether they have the version that is due.
class UnitArrivals {
 public:
  UnitArrivals(Stage& stage, Residency& residency) : stage_(stage), residency_(residency) {}

  /// A unit that has come for a reader, with the version that is due and the one that it had where it came
  /// from (f64).
  struct Arrival {
    Reader reader = 0;
    int unit = 0;
    std::int64_t due = 0;
    Tensor version = {};
  };
  /// Says whether each reader finds a unit as all older ones have left it.
  void come_in_order(bool in_order) { in_order_ = in_order; }
  /// Takes what a part of a message has brought. The host may be ahead of the device: with the last part it
  /// counts on the version that is due.
  void ended(const Action& move);
  /// Arrivals that were not asked for before; at a drain those of all readers, as units have come home.
  std::vector<Arrival> take(Reader reader);
  std::vector<Arrival> take() { return std::exchange(arrivals_, {}); }

  /// Makes sure that a reader finds the version that is due of each unit that it uses in blocks [first,
  /// last).
  void require_due(Reader reader, int first, int last) const;
  void require_due(Reader reader, int unit, std::int64_t found, std::int64_t due) const;

 private:
  Stage& stage_;
  Residency& residency_;
  bool in_order_ = false;
  std::vector<Arrival> arrivals_;
};

}  // namespace mindpipe
