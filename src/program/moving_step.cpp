#include "program/moving_step.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

#include "core/check.h"

namespace mindpipe {
namespace {

void require_movable(const Outline& outline) {
  MP_REQUIRE(outline.training && outline.ranks() == outline.stages && !outline.own_cuts,
             Exit::bad_configuration,
             "blocks change their stage between two steps, and a supernet has no steps: its units move by "
             "version (set supernet.lanes or supernet.cuts in place of repartition)");
  MP_REQUIRE(
      outline.stages > 1, Exit::bad_configuration,
      "blocks change their stage, but the pipeline has one stage (take a larger grid.pipeline, or leave "
      "repartition out)");
  MP_REQUIRE(
      !outline.state_on_host, Exit::bad_configuration,
      "blocks change their stage with their masters and moments, but masters and moments are kept on the "
      "host (take memory.optimizer: device, or leave repartition out)");
  MP_REQUIRE(
      outline.chunks == 1, Exit::bad_configuration,
      "blocks change their stage, but each stage has {} chunks, whose neighbours are on other stages at "
      "both ends, so that each boundary would move blocks around the whole ring (take schedule.chunks: "
      "1, or leave repartition out)",
      outline.chunks);
}

}  // namespace

Outline moving_step(const Outline& outline, const std::vector<int>& next, int most) {
  require_movable(outline);
  MP_CHECK(
      next.size() == outline.first_block.size() && next.front() == 0 && next.back() == outline.all_blocks(),
      "a cut with {} edges, where {} are due", next.size(), outline.first_block.size());
  Outline moving = outline;
  moving.next_first_block = next;
  for (int stage = 1; stage < outline.stages; ++stage) {
    const int from = outline.first_block[stage], to = next[stage];
    MP_REQUIRE(
        std::abs(to - from) <= most, Exit::bad_configuration,
        "the boundary before block {} would move to block {}, by {} blocks, and a rank has room for {} "
        "(move it in several steps, or raise repartition.room)",
        from, to, std::abs(to - from), most);
  }
  const Outline after = after_move(moving);
  for (int block = 0; block < outline.all_blocks(); ++block) {
    const int from = outline.chunk_of(block), to = after.chunk_of(block);
    if (from == to) continue;
    MP_REQUIRE(std::abs(from - to) == 1, Exit::bad_configuration,
               "block {} would move from stage {} to stage {}, across a whole stage (move it to the stage "
               "between them in a step before)",
               block, from, to);
    for (const UnitUse& use : outline.uses_in(block, block + 1)) {
      const std::vector<int>& users = outline.units[use.unit].blocks;
      MP_REQUIRE(users.size() == 1, Exit::bad_configuration,
                 "block {} would move from stage {} to stage {}, but it shares a table with block {}, and a "
                 "shared table stays where it is (leave that block on its stage)",
                 block, from, to, users.front() == block ? users.back() : users.front());
    }
  }
  return moving;
}

Outline after_move(const Outline& moving) {
  Outline after = moving;
  if (after.moves_blocks()) after.first_block = std::exchange(after.next_first_block, {});
  return after;
}

std::optional<std::pair<int, int>> way_of(const Outline& moving, int unit) {
  const UnitCost& cost = moving.units[unit];
  if (!moving.moves_blocks() || cost.values == 0 || cost.blocks.size() != 1) return {};
  const int block = cost.blocks.front();
  const std::vector<int>& behind = moving.next_first_block;
  const auto next = std::upper_bound(behind.begin(), behind.end(), block);
  const int from = moving.rank_of_block(block),
            to = moving.rank_of(static_cast<int>(next - behind.begin()) - 1);
  if (from == to) return {};
  return std::pair(from, to);
}

std::vector<int> units_leaving(const Outline& moving, int from, int to) {
  std::vector<int> leaving;
  for (const int unit : moving.units_of_rank(from))
    if (way_of(moving, unit) == std::pair(from, to)) leaving.push_back(unit);
  return leaving;
}

std::vector<int> units_updated_by(const Outline& outline, int rank) {
  std::vector<int> updated = outline.units_of_rank(rank);
  if (!outline.moves_blocks()) return updated;
  std::erase_if(updated, [&](int unit) { return way_of(outline, unit).has_value(); });
  for (int from = 0; from < outline.stages; ++from) {
    const std::vector<int> arriving = units_leaving(outline, from, rank);
    updated.insert(updated.end(), arriving.begin(), arriving.end());
  }
  return updated;
}

std::string moved_blocks(const Outline& moving) {
  const Outline after = after_move(moving);
  std::map<std::pair<int, int>, std::vector<int>> blocks;
  for (int block = 0; block < moving.all_blocks(); ++block)
    if (const int from = moving.chunk_of(block), to = after.chunk_of(block); from != to)
      blocks[{from, to}].push_back(block);
  std::string text;
  for (const auto& [way, moved] : blocks)
    text += fmt::format("{}block{} {} from stage {} to stage {}", text.empty() ? "" : ", ",
                        moved.size() == 1 ? "" : "s", fmt::join(moved, ", "), way.first, way.second);
  return text;
}

}  // namespace mindpipe
