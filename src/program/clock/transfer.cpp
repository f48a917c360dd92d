#include "program/clock/transfer.h"

#include <algorithm>

#include "core/bulk_parts.h"
#include "core/port_rule.h"
#include "core/sum_tree.h"

namespace mindpipe {
namespace {

/// Bytes of what is summed: f32 accumulators, or whole numbers in their place.
std::int64_t summed_bytes(const UnitCost& unit) { return unit.shared ? 2 * unit.gradients : unit.gradients; }

int parts_over_data(const Outline& outline, std::int64_t bytes) {
  return outline.data > 1 ? parts_of(bytes, outline.data, outline.part_bytes) : 1;
}

}  // namespace

std::int64_t part_bytes_on(const Network& network, const Outline& outline, bool blocks_may_move) {
  const bool has_exchanges =
      outline.has_moves() || outline.moves_blocks() || blocks_may_move ||
      std::any_of(outline.units.begin(), outline.units.end(), [&](const UnitCost& unit) {
        return outline.ranks_of(static_cast<int>(&unit - outline.units.data())).size() > 1;
      });
  return part_bytes_of(std::max(outline.data > 1 ? network.data.picoseconds_per_byte : 0,
                                has_exchanges ? network.message.picoseconds_per_byte : 0),
                       outline.data, network.longest_part);
}

std::int64_t sent_in_group(int ranks, std::int64_t bytes) {
  return (bytes * (ranks - 1) + ranks - 1) / ranks;
}

/// A rank sends the others' pieces of each of its roots, and unless shares stay where they are, its own
/// piece of the sum to all. Whole numbers have one root: their order does not matter.
Transfer sum_over_data(const Outline& outline, int unit) {
  const UnitCost& cost = outline.units[unit];
  const std::int64_t bytes = summed_bytes(cost),
                     roots = cost.shared || outline.shards == 1
                                 ? 1
                                 : most_roots(outline.data * outline.shards, outline.data),
                     sums = outline.sharded_optimizer ? 0 : 1;
  // Each root has a chunk for each rank in each part.
  const int most = outline.data > 1 ? parts_of(bytes, outline.data, outline.data * longest_overhang) : 1;
  return {(roots + sums) * sent_in_group(outline.data, bytes),
          std::min(most, parts_over_data(outline, roots * bytes))};
}

Transfer gather_over_data(const Outline& outline, int unit) {
  const std::int64_t bytes = outline.units[unit].values;
  return {sent_in_group(outline.data, bytes), parts_over_data(outline, bytes)};
}

Transfer exchange_of(const Outline& outline, int unit) {
  const std::int64_t all = summed_bytes(outline.units[unit]),
                     bytes = outline.sharded_optimizer ? (all + outline.data - 1) / outline.data : all;
  return {bytes, parts_of(bytes, 0, outline.part_bytes)};
}

Transfer move_of(const Outline& outline, std::span<const int> units) {
  std::int64_t bytes = 0;
  for (const int unit : units) bytes += outline.units[unit].moved;
  return {bytes, parts_of(bytes, 0, outline.part_bytes)};
}

MoveByTable move_by_table(const Outline& outline, std::span<const int> units) {
  MoveByTable move;
  for (const int unit : units) {
    const UnitCost& cost = outline.units[unit];
    if (cost.move < 0) {
      move.bytes += cost.moved;
      continue;
    }
    move.is_priced = true;
    move.time += cost.move;
  }
  return move;
}

void set_calls(Calls& calls, const Outline& outline) {
  const auto has_price = [](const UnitCost& unit) { return unit.move >= 0; };
  calls.part_bytes = outline.part_bytes;
  calls.of_move = std::ranges::any_of(outline.units, has_price) ? PortRule::most_turns : 1;
}

}  // namespace mindpipe
