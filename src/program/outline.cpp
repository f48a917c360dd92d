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

}  // namespace mindpipe
