#include "program/outline.h"

#include <algorithm>

namespace mindpipe {
namespace {

void sort_unique(std::vector<int>& numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

}  // namespace

std::vector<int> looped_chunks(int stages, int chunks) {
  std::vector<int> ranks;
  for (int chunk = 0; chunk < stages * chunks; ++chunk) ranks.push_back(chunk % stages);
  return ranks;
}

std::vector<int> v_shaped_chunks(int stages, int chunks) {
  std::vector<int> ranks;
  for (int chunk = 0; chunk < stages * chunks; ++chunk)
    ranks.push_back(chunk / stages % 2 == 1 ? stages - 1 - chunk % stages : chunk % stages);
  return ranks;
}

int Outline::chunk_of(int block) const {
  int chunk = 0;
  while (first_block[chunk + 1] <= block) ++chunk;
  return chunk;
}

void Outline::add_block(const BlockCost& cost, const std::vector<int>& used) {
  for (int unit : used) units[unit].blocks.push_back(all_blocks());
  if (!parts_of.empty()) parts_of.emplace_back();
  blocks.push_back({cost});
  units_used.push_back({used});
}

void Outline::add_choice(const std::vector<BlockCost>& costs, const std::vector<int>& unit_of,
                         const std::vector<BlockPart>& parts) {
  parts_of.resize(blocks.size());
  parts_of.push_back(parts);
  auto& used = units_used.emplace_back();
  for (const int unit : unit_of) {
    used.push_back(unit < 0 ? std::vector<int>{} : std::vector<int>{unit});
    if (unit < 0) continue;
    std::vector<int>& users = units[unit].blocks;  // candidates may share a unit
    if (users.empty() || users.back() != all_blocks()) users.push_back(all_blocks());
  }
  blocks.push_back(costs);
}

std::vector<UnitUse> Outline::uses_in(int first, int last) const {
  std::vector<UnitUse> uses;
  for (int block = first; block < last; ++block) {
    const std::size_t before = uses.size();
    for (const std::vector<int>& used : units_used[block])
      for (int unit : used) {
        const UnitUse use{unit, block};
        const bool is_new =
            std::find(uses.begin() + static_cast<std::ptrdiff_t>(before), uses.end(), use) == uses.end();
        if (is_new && units[unit].values > 0) uses.push_back(use);
      }
  }
  return uses;
}

std::vector<int> Outline::homes_of(int unit) const {
  std::vector<int> homes;
  for (int block : units[unit].blocks) homes.push_back(rank_of_block(block));
  sort_unique(homes);
  return homes;
}

std::vector<int> Outline::ranks_of(int unit) const {
  const std::vector<int> homes = homes_of(unit);
  std::vector<int> ranks;
  for (int lane = 0; lane < lanes; ++lane)
    for (const int stage : homes) ranks.push_back(lane * stages + stage);
  return ranks;
}

std::vector<int> Outline::units_of_rank(int rank) const {
  std::vector<int> local;
  for (int chunk = 0; chunk < all_chunks(); ++chunk)
    if (rank_of(chunk) == rank)
      for (const UnitUse& use : uses_in(first_block[chunk], first_block[chunk + 1]))
        local.push_back(use.unit);
  sort_unique(local);
  return local;
}

Outline Outline::after_move() const {
  Outline after = *this;
  if (moves_blocks()) after.first_block = std::exchange(after.next_first_block, {});
  return after;
}

std::optional<std::pair<int, int>> Outline::way_of(int unit) const {
  if (!moves_blocks() || units[unit].values == 0 || units[unit].blocks.size() != 1) return {};
  const int block = units[unit].blocks.front();
  const auto next = std::upper_bound(next_first_block.begin(), next_first_block.end(), block);
  const int from = rank_of_block(block), to = rank_of(static_cast<int>(next - next_first_block.begin()) - 1);
  if (from == to) return {};
  return std::pair(from, to);
}

std::vector<int> Outline::units_leaving(int from, int to) const {
  std::vector<int> leaving;
  for (const int unit : units_of_rank(from))
    if (way_of(unit) == std::pair(from, to)) leaving.push_back(unit);
  return leaving;
}

std::vector<int> Outline::units_updated_by(int rank) const {
  std::vector<int> updated = units_of_rank(rank);
  if (!moves_blocks()) return updated;
  std::erase_if(updated, [&](int unit) { return way_of(unit).has_value(); });
  for (int from = 0; from < stages; ++from) {
    const std::vector<int> arriving = units_leaving(from, rank);
    updated.insert(updated.end(), arriving.begin(), arriving.end());
  }
  return updated;
}

std::int64_t Outline::share_bytes(int unit) const {
  return units[unit].share > 0 ? units[unit].share : (units[unit].gradients + data - 1) / data;
}

std::int64_t Outline::share_of_state(int unit) const {
  const UnitCost& cost = units[unit];
  return sharded_optimizer && cost.gradients > 0 ? cost.state / cost.gradients * share_bytes(unit)
                                                 : cost.state;
}

std::int64_t Outline::held_bytes(int unit) const {
  return units[unit].values + (state_on_host ? 0 : share_of_state(unit));
}

std::int64_t Outline::bytes_of_use(int unit) const {
  return sharded_gradients ? share_bytes(unit) : accumulator_bytes(unit);
}

bool Outline::swaps() const {
  return std::any_of(swapped.begin(), swapped.end(), [](char is) { return is != 0; });
}

std::vector<std::pair<int, int>> Outline::pieces_of(int first, int last) const {
  std::vector<std::pair<int, int>> pieces;
  for (int block = first; block < last; ++block)
    if (pieces.empty() || is_swapped(block) || is_swapped(block - 1)) pieces.emplace_back(block, block + 1);
    else pieces.back().second = block + 1;
  return pieces;
}

std::int64_t Outline::bytes_in_segment(int block) const {
  return bytes_in_segment(block, first_block[chunk_of(block) + 1]);
}

std::int64_t Outline::bytes_in_segment(int block, int last) const {
  return cost(block).saved + cuts[block].activation - (block + 1 == last ? 0 : cuts[block + 1].activation);
}

std::int64_t Outline::bytes_beside_segments(int chunk) const {
  std::int64_t bytes = 0;
  for (int block = first_block[chunk]; block < first_block[chunk + 1]; ++block) {
    if (is_swapped(block)) continue;
    bytes += cost(block).saved;
    if (block > first_block[chunk] && is_swapped(block - 1)) bytes += cuts[block].activation;
    if (block + 1 < first_block[chunk + 1] && is_swapped(block + 1)) bytes -= cuts[block + 1].activation;
  }
  return bytes;
}

std::int64_t Outline::accumulator_bytes(int unit) const {
  return units[unit].gradients * (1 + most_levels(data * shards, data)) + units[unit].sequence_parts;
}

}  // namespace mindpipe
