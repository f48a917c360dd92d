// thorough ranks: 4
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>
#include <vector>

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

RunPlan plan_of(int number, const KnownOrder& known = {}) {
  return make_run_plan(searched_run(number, ScheduleKind::searched), Purpose::training, {}, 1,
                       drawn_times(number), known);
}

/// The order of each draw, searched by one rank.
std::vector<std::string> shared_orders() {
  const World world = all_ranks();
  std::vector<std::string> orders(drawn_orders);
  for (int number = world.rank; number < drawn_orders; number += world.size)
    orders[number] = plan_of(number).training.found_order;
  for (int number = 0; number < drawn_orders; ++number) {
    auto length = static_cast<int>(orders[number].size());
    MPI_Bcast(&length, 1, MPI_INT, number % world.size, world.comm);
    orders[number].resize(length);
    MPI_Bcast(orders[number].data(), length, MPI_CHAR, number % world.size, world.comm);
  }
  return orders;
}

TEST(SearchedOrders, OfFortyDrawsHaveTheBitsOfOneInPlainOrder) {
  const std::vector<std::string> orders = shared_orders();
  std::set<std::string> different;
  for (int number = 0; number < drawn_orders; ++number) {
    const std::string& text = orders[number];
    ASSERT_FALSE(text.empty()) << number;
    different.insert(text.substr(text.find('\n')));  // behind what was asked
    if (number % 10 == 0) {
      EXPECT_EQ(plan_of(number).training.found_order, text) << number << ": every rank finds the same";
    }
    const Config plain = searched_run(number, ScheduleKind::gpipe),
                 searched = searched_run(number, ScheduleKind::searched);
    const RunPlan plan = plan_of(number, {"the rank that searched", text});
    EXPECT_EQ(plan.training.found_order, "") << number << ": the order was known";
    EXPECT_EQ(train_three_steps(searched, plan), train_three_steps(plain, make_run_plan(plain))) << number;
  }
  EXPECT_GE(different.size(), drawn_orders / 2U);
}

}  // namespace
}  // namespace mindpipe
