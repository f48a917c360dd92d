#include "plan/move_ratio.h"

namespace mindpipe {

double move_ratio(const Outline& outline, const Network& network) {
  double moves = 0, passes = 0;
  for (int block = 0; block < outline.all_blocks(); ++block)
    for (const BlockPart& part : outline.parts(block))
      for (int candidate = part.first; candidate < part.first + part.count; ++candidate) {
        const BlockCost& cost = outline.cost(block, candidate);
        passes += static_cast<double>(outline.micro_batches * (cost.forward + cost.backward)) / part.count;
        for (const int number : outline.units_used[block][candidate]) {
          const UnitCost& unit = outline.units[number];
          if (unit.shared) continue;
          const std::int64_t time = unit.move >= 0 ? unit.move : network.message.carries(unit.moved);
          moves += static_cast<double>(time) / part.count;
        }
      }
  return passes == 0 ? 0 : moves / passes;
}

}  // namespace mindpipe
