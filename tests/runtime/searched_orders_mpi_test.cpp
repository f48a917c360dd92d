// thorough ranks: 4
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "plan/run_plan.h"
#include "runtime/planned_run.h"
#include "runtime/predicted.h"

// Runs in orders that were searched for drawn times.
namespace mindpipe {
namespace {

constexpr int drawn_orders = 40;

/// Two stages or four, with data or tensor ranks where there are more; m from half the stages on.
Config searched_run(int number, ScheduleKind schedule) {
  Config c = small_run();
  c.model.gpt.layers = 6;
  const int ranks = all_ranks().size, stages = number % 2 == 0 ? ranks : 2;
  const int rest = ranks / stages;
  c.grid = {1, stages, number % 4 == 1 ? rest : 1, number % 4 == 1 ? 1 : rest};
  c.train.batch = 16;
  c.train.zero = number % 3;
  c.train.micro_batch = number % 5 == 0 ? 4 : 1;
  c.schedule.kind = schedule;
  return resolve(c);
}

/// Other times of each block's passes, and of messages.
ChangeOnPaper drawn_times(int number) {
  return [number](Outline& outline, Network& network) {
    std::mt19937 random(number);
    const auto below = [&](int end) { return static_cast<std::int64_t>(random() % end); };
    for (auto& candidates : outline.blocks) {
      BlockCost& cost = candidates.front();
      cost.forward = 5000 + below(5000);
      cost.backward_input = 5000 + below(5000);
      cost.backward_weight = 2000 + below(5000);
      cost.backward = cost.backward_input + cost.backward_weight;
    }
    network.message.latency = below(3000);
  };
}

TEST(SearchedOrders, OfFortyDrawsHaveTheBitsOfOneInPlainOrder) {
  std::set<std::string> different;
  for (int number = 0; number < drawn_orders; ++number) {
    const Config plain = searched_run(number, ScheduleKind::gpipe),
                 searched = searched_run(number, ScheduleKind::searched);
    const RunPlan plan = make_run_plan(searched, Purpose::training, {}, 1, drawn_times(number));
    const std::string& text = plan.training.found_order;
    ASSERT_FALSE(text.empty()) << number;
    different.insert(text.substr(text.find('\n')));  // behind what was asked
    EXPECT_EQ(train_three_steps(searched, plan), train_three_steps(plain, make_run_plan(plain))) << number;
  }
  EXPECT_GE(different.size(), drawn_orders / 2U);
}

}  // namespace
}  // namespace mindpipe
