#pragma once
#include "program/clock/prices.h"

namespace mindpipe {

/// The sum over data of what one use of a unit adds on a rank, to whom it belongs: a subnet, with the slab in
/// which it lies, or a window.
inline Task sum_of_use(const Outline& outline, const PriceList& prices, int rank, const Owner& owner,
                       const UnitUse& use, int slab = Task::none) {
  Task sum{.kind = TaskKind::sum,
           .rank = rank,
           .owner = owner,
           .chunk = outline.stage_of_rank(rank),
           .unit = use.unit,
           .block = use.block,
           .parts = sum_over_data(outline, use.unit).parts,
           .slab = slab};
  sum.take(prices.sum(use.unit));
  return sum;
}

}  // namespace mindpipe
