#pragma once
#include <cstdint>

#include "core/sum_tree.h"
#include "program/outline.h"

namespace mindpipe {

// Bytes that a rank holds of a unit, as the optimizer and gradients are sharded and state is kept.

/// The sums over all logical data shards.
inline SumTree data_tree(const Outline& outline) {
  return SumTree(outline.data * outline.shards, outline.data);
}
/// Bytes of the largest share that a data rank owns of a unit's gradient.
std::int64_t share_bytes(const Outline& outline, int unit);
/// Bytes of the largest share that a data rank has of a unit's masters and moments.
std::int64_t share_of_state(const Outline& outline, int unit);
/// Whether a unit's masters and moments come from the host for its update.
inline bool is_fetched(const Outline& outline, int unit) {
  return outline.state_on_host && outline.units[unit].state > 0;
}
/// Bytes that a rank holds of a unit, however many of its blocks use it: values, and masters and moments
/// unless these wait on the host.
std::int64_t held_bytes(const Outline& outline, int unit);
/// Bytes that each use of a unit adds: accumulators, or the share of them that its sum over data leaves.
std::int64_t bytes_of_use(const Outline& outline, int unit);
/// Bytes of what one use's backwards add to: gradients, T-ths of the sequence, the counter over shards.
std::int64_t accumulator_bytes(const Outline& outline, int unit);

}  // namespace mindpipe
