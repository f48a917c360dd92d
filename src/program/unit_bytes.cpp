#include "program/unit_bytes.h"

namespace mindpipe {

std::int64_t share_bytes(const Outline& outline, int unit) {
  const UnitCost& cost = outline.units[unit];
  return cost.share > 0 ? cost.share : (cost.gradients + outline.data - 1) / outline.data;
}

std::int64_t share_of_state(const Outline& outline, int unit) {
  const UnitCost& cost = outline.units[unit];
  return outline.sharded_optimizer && cost.gradients > 0
             ? cost.state / cost.gradients * share_bytes(outline, unit)
             : cost.state;
}

std::int64_t held_bytes(const Outline& outline, int unit) {
  return outline.units[unit].values + (outline.state_on_host ? 0 : share_of_state(outline, unit));
}

std::int64_t bytes_of_use(const Outline& outline, int unit) {
  return outline.sharded_gradients ? share_bytes(outline, unit) : accumulator_bytes(outline, unit);
}

std::int64_t accumulator_bytes(const Outline& outline, int unit) {
  const UnitCost& cost = outline.units[unit];
  return cost.gradients * (1 + most_levels(outline.data * outline.shards, outline.data)) +
         cost.sequence_parts;
}

}  // namespace mindpipe
