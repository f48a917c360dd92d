#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "program/schedules/order.h"

namespace mindpipe {
namespace {

constexpr int period = 6;

/// Whether the four passes of a stage never meet. Six stages stand for all: times count up to the period.
bool meets_nowhere(const VPattern& pattern) {
  const auto& [forward, backward, turn] = pattern;
  const int last = period - 1, bottom = last * forward[0] + turn[0],
            loss = bottom + last * forward[1] + turn[1], bottom_again = loss + last * backward[0] + turn[2];
  for (int stage = 0; stage < period; ++stage) {
    const int times[] = {stage * forward[0], bottom + (last - stage) * forward[1], loss + stage * backward[0],
                         bottom_again + (last - stage) * backward[1]};
    unsigned taken = 0;
    for (const int time : times) taken |= 1U << (time % period);
    if (std::popcount(taken) < 4) return false;
  }
  return true;
}

}  // namespace

std::vector<VPattern> all_patterns() {
  constexpr int behind = period - 1, turns = period;  // so many of each are tried, from one on
  constexpr std::array sizes{behind, behind, behind, behind, turns, turns, turns};
  std::vector<VPattern> all;
  std::array<int, sizes.size()> is{};
  for (bool ends = false; !ends;) {
    const VPattern pattern{.forward = {is[0] + 1, is[1] + 1},
                           .backward = {is[2] + 1, is[3] + 1},
                           .turn = {is[4] + 1, is[5] + 1, is[6] + 1}};
    if (meets_nowhere(pattern)) all.push_back(pattern);
    std::size_t digit = 0;
    while (digit < sizes.size() && ++is[digit] == sizes[digit]) is[digit++] = 0;
    ends = digit == sizes.size();
  }
  return all;
}

Order order_in_v(const OrderRequest& request, const VPattern& pattern) {
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
