#pragma once
#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "core/random.h"
#include "core/text.h"
#include "program/check/checker.h"
#include "program/clock/task_graph.h"
#include "program/sample_outline.h"

namespace mindpipe {

/// Numbers drawn by lot, and groups of micro-batches.
class GroupLots {
 public:
  explicit GroupLots(std::string_view purpose) : stream_{29, purpose_of(purpose)} {}
  int from(int least, int most) {
    return least + static_cast<int>(stream_.word(draws_++) % static_cast<std::uint64_t>(most - least + 1));
  }
  /// Groups of `least` or more that add up to `all`; one where `all` is less.
  std::vector<int> groups(int least, int all) {
    std::vector<int> sizes;
    for (int left = all; left > 0;) {
      const int size = left < 2 * least ? left : from(least, left);
      const bool leaves_too_little = left - size > 0 && left - size < least;
      sizes.push_back(leaves_too_little ? left : size);
      left -= sizes.back();
    }
    return sizes;
  }

 private:
  RandomStream stream_;
  std::uint64_t draws_ = 0;
};

/// Tapes that a list of passes holds at once, counted as they are begun and given back.
inline int most_tapes(const std::vector<Pass>& passes) {
  int held = 0, most = 0;
  for (const Pass& pass : passes) most = std::max(most, held += pass.kind == ActionKind::forward ? 1 : -1);
  return most;
}

inline std::string text_of(const OrderRequest& request) {
  const auto text = [](const std::vector<int>& groups) { return "[" + joined(groups) + "]"; };
  return fmt::format("p {} v {} m {}, groups {} and {}", request.stages, request.chunks,
                     request.micro_batches, text(request.groups.forward), text(request.groups.backward));
}

/// Expects elastic orders with groups of the stages or more to pass the checker and to stand nowhere still.
inline void expect_sound_orders(int draws) {
  using ::testing::IsEmpty;
  GroupLots lots("elastic orders");
  for (int draw = 0; draw < draws; ++draw) {
    OrderRequest request{
        .stages = lots.from(1, 8), .micro_batches = lots.from(1, 24), .chunks = lots.from(1, 4)};
    request.groups = {lots.groups(request.stages, request.micro_batches),
                      lots.groups(request.stages, request.micro_batches)};
    const Outline outline = equal_stages(request.stages, request.micro_batches, request.chunks);
    const Order order = make_order(ScheduleKind::elastic, request);
    const PlannedStep step = plan_step(outline, order);
    ASSERT_THAT(check(step.program, outline), IsEmpty()) << text_of(request);
    ASSERT_THAT(tasks_stuck(make_task_graph(step.program)), IsEmpty()) << text_of(request);
    ASSERT_THAT(tasks_stuck(make_task_graph(step.program, Follow::by_tickets)), IsEmpty())
        << text_of(request);
    const std::vector<int> held = peak_tapes(step.program, outline);
    for (int stage = 0; stage < request.stages; ++stage) {
      ASSERT_EQ(held[stage], most_tapes(order[stage])) << text_of(request);
      ASSERT_EQ(step.placement.ranks[stage].arenas, held[stage]) << text_of(request);
    }
  }
}

}  // namespace mindpipe
