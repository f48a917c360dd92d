#pragma once
#include <vector>

#include "comm/reduction.h"
#include "state/residency.h"

namespace mindpipe {

/// One of so many parts of a vector, of which none is more than an element longer than another.
inline Tensor part_of(const Tensor& whole, std::int64_t part, std::int64_t parts) {
  const std::int64_t first = whole.count() * part / parts;
  return whole.range(first, whole.count() * (part + 1) / parts - first);
}

/// What travels over the data axis, in parts: gradients of this rank's units, summed over data shards, and
/// values that ranks have shares of (ZeRO).
class GradientSums {
 public:
  GradientSums(Stage& stage, Residency& residency, Communicator& data);

  /// Begins one part of the sum of a use's gradient over the data axis: to all ranks, or under ZeRO to the
  /// rank that owns each piece. `moves_out`: to this rank's place apart, since the accumulators go to others.
  Reductions::Request reduce(Reductions& over_data, const UnitUse& use, int part, int parts, bool moves_out);
  /// Begins one part of bringing a unit's new values from the ranks that own them.
  Reductions::Request gather(Reductions& over_data, int unit, int part, int parts);
  /// Brings together all values that are in shares, for who reads them between two steps. Collective over the
  /// data axis, and nothing where all are whole.
  void settle(Reductions& over_data);
  /// Bytes that this rank sends in one part of a reduce or gather.
  std::int64_t sent_by_reduce(const UnitUse& use, int part, int parts) const;
  std::int64_t sent_by_gather(int unit, int part, int parts) const;
  /// One part of a use's gradient, summed over data: what homes of the unit on other stages exchange.
  Tensor exchanged_part(const UnitUse& use, int part, int parts) const;

 private:
  /// Each data rank's piece of part `part` of `parts` of a unit's flat elements. Pieces are cut at edges of
  /// chunks, and a rank's pieces of all parts are its share under ZeRO.
  std::vector<Tensor> pieces_of(int unit, const Tensor& flat, int part, int parts) const;
  Tensor accumulator_of(const UnitUse& use) const {
    return stage_.unit(use.unit).gradients().root(stage_.use_of(use));
  }

  Stage& stage_;
  Residency& residency_;
  Communicator& data_;
  std::size_t roots_;  ///< roots of the tree over data shards
};

}  // namespace mindpipe
