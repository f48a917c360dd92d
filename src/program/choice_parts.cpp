#include "program/choice_parts.h"

namespace mindpipe {

void add_choice(Outline& outline, const std::vector<BlockCost>& costs, const std::vector<int>& unit_of,
                const std::vector<BlockPart>& parts) {
  outline.parts_of.resize(outline.blocks.size());
  outline.parts_of.push_back(parts);
  auto& used = outline.units_used.emplace_back();
  for (const int unit : unit_of) {
    used.push_back(unit < 0 ? std::vector<int>{} : std::vector<int>{unit});
    if (unit < 0) continue;
    std::vector<int>& users = outline.units[unit].blocks;  // candidates may share a unit
    if (users.empty() || users.back() != outline.all_blocks()) users.push_back(outline.all_blocks());
  }
  outline.blocks.push_back(costs);
}

std::vector<BlockPart> choice_parts(const Outline& outline, int block) {
  if (!outline.parts_of.empty() && !outline.parts_of[block].empty()) return outline.parts_of[block];
  return {{block, 0, static_cast<int>(outline.blocks[block].size())}};
}

}  // namespace mindpipe
