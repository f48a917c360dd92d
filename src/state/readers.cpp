#include "state/readers.h"

#include <algorithm>

namespace mindpipe {

void Readers::begin(std::vector<std::int64_t> users) {
  readers_.clear();
  users_ = std::move(users);
}

void Readers::know(const Subnet& subnet) {
  const Layout& layout = stage_.layout();
  const std::vector<Model::Block>& blocks = stage_.model().blocks();
  Known known;
  for (int block = 0; block < static_cast<int>(blocks.size()); ++block)
    for (const Model::Block::Choice& part : blocks[block].choices) {
      const int unit = part.units[subnet.choice[part.place]];
      if (unit < 0) continue;
      known.uses.push_back({unit, block});
      known.due.push_back(users_[unit]++);
    }
  if (subnet.id % layout.grid.supernet == layout.coord.supernet) readers_[subnet.id] = std::move(known);
}

std::span<const UnitUse> Readers::uses(Reader reader, int first, int last) const {
  const auto known = readers_.find(reader);
  const std::vector<UnitUse>& uses = known == readers_.end() ? steps_.uses : known->second.uses;
  const auto from = [&](int block) {
    return std::partition_point(uses.begin(), uses.end(),
                                [&](const UnitUse& use) { return use.block < block; });
  };
  return {from(first), from(last)};
}

std::int64_t Readers::due(Reader reader, int unit) const {
  const auto known = readers_.find(reader);
  if (known == readers_.end()) return users_[unit];
  const auto& [uses, due] = known->second;
  const auto use =
      std::find_if(uses.begin(), uses.end(), [&](const UnitUse& one) { return one.unit == unit; });
  MP_CHECK(use != uses.end(), "a version of unit {} is due to subnet {}, which does not use it", unit,
           reader);
  return due[static_cast<std::size_t>(use - uses.begin())];
}

}  // namespace mindpipe
