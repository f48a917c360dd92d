#include <algorithm>
#include <utility>

#include "program/schedules/order.h"

namespace mindpipe {

Order order_in_v(const OrderRequest& request, const VPattern& pattern) {
  constexpr int period = 6;
  const int last = request.stages - 1, bottom = last * pattern.forward[0] + pattern.turn[0],
            loss = bottom + last * pattern.forward[1] + pattern.turn[1],
            bottom_again = loss + last * pattern.backward[0] + pattern.turn[2];
  Order order(request.stages);
  for (int stage = 0; stage < request.stages; ++stage) {
    const int down = stage, up = 2 * request.stages - 1 - stage;  // chunks
    // Passes that stand at one time keep the order that they have here.
    const std::pair<int, Pass> turns[] = {
        {bottom + (last - stage) * pattern.forward[1], {ActionKind::forward, up, 0}},
        {stage * pattern.forward[0], {ActionKind::forward, down, 0}},
        {loss + stage * pattern.backward[0], {ActionKind::backward, up, 0}},
        {bottom_again + (last - stage) * pattern.backward[1], {ActionKind::backward, down, 0}}};
    std::vector<std::pair<int, Pass>> passes;
    for (const auto& [time, pass] : turns)
      for (int k = 0; k < request.micro_batches; ++k)
        passes.emplace_back(time + period * k, Pass{pass.kind, pass.chunk, k});
    std::stable_sort(passes.begin(), passes.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [time, pass] : passes) order[stage].push_back(pass);
  }
  return order;
}

}  // namespace mindpipe
