// thorough
#include <gmock/gmock.h>

#include <algorithm>
#include <random>

#include "program/check/checker.h"
#include "program/make_program.h"
#include "program/sample_outline.h"
#include "program/schedules/order_runs.h"
#include "program/schedules/order_search.h"

// Orders that are searched, on paper.
namespace mindpipe {
namespace {

/// Costs, messages and a limit that were drawn.
struct Drawn {
  int stages, micro_batches;
  double memory;  ///< the limit on tapes, as a multiple of those of 1f1b
  StageTimes times;
  Network network;

  explicit Drawn(int number) {
    std::mt19937 random(number);
    const auto below = [&](int end) { return static_cast<int>(random() % end); };
    stages = std::vector{4, 8, 16}[below(3)];
    micro_batches = stages * (1 + below(4));
    memory = std::vector{0.8, 1.1, 1.5}[number % 3];
    times.forward = 12000;
    times.backward_input = 9000 + 2 * below(4000);
    times.backward_weight = 7000 + 2 * below(3500);
    times.backward = times.backward_input + times.backward_weight;
    network.message.latency = below(1500);
  }
  Outline outline(const char* schedule) const {
    return stages_of_gpt2(schedule, stages, micro_batches, times);
  }
  std::int64_t limit() const {
    return static_cast<std::int64_t>(memory * static_cast<double>(tapes_of_1f1b(outline("zb-v"))));
  }
  /// Idle nanoseconds of the stages, which are equal, in the best step within the limit; 0: there is none.
  std::int64_t idle(const char* schedule, const Order& rows) const {
    const Outline outlined = outline(schedule);
    const PassClock clock(outlined, PriceList(outlined, network));
    std::int64_t least = 0;
    for (const int quarters : {4, 3, 2, 1}) {
      const PassClock::Run run = clock.run(rows, {.quarters = quarters, .most_tapes = limit()});
      if (run.most_tapes <= limit() && (least == 0 || run.step < least)) least = run.step;
    }
    const std::int64_t busy = micro_batches * (times.forward + times.backward);
    return least == 0 ? 0 : least - busy;
  }
};

TEST(SearchedOrders, AreNeverLongerThanARowAndIdleATenthLessInMany) {
  int much_better = 0;
  const int draws = 40;
  for (int number = 0; number < draws; ++number) {
    const Drawn drawn(number);
    std::int64_t best = 0;
    for (const char* schedule : {"zb-h1", "zb-v", "v-half", "dualpipe-v"}) {
      const Order rows = make_order(schedule_named(schedule), request_of(drawn.outline(schedule)));
      const std::int64_t idle = drawn.idle(schedule, rows);
      if (idle > 0 && (best == 0 || idle < best)) best = idle;
    }
    const Outline outline = drawn.outline("searched");
    const PriceList prices(outline, drawn.network);
    const Order found = search_order(outline, prices, drawn.limit());
    const std::int64_t idle = drawn.idle("searched", found);
    ASSERT_GT(best, 0) << number;
    EXPECT_GT(idle, 0) << number;
    EXPECT_LE(idle, best) << number;
    much_better += 10 * idle <= 9 * best ? 1 : 0;
    const Order halves =
        with_weight_gradients(found, PassClock(outline, prices), {.most_tapes = drawn.limit()});
    const PlannedStep step = plan_step(outline, halves, drawn.network);
    EXPECT_THAT(check(step.program, outline), testing::IsEmpty()) << number;
    if (drawn.stages == 4) {  // where a search is short
      EXPECT_EQ(search_order(outline, prices, drawn.limit()), found) << number;
    }
  }
  EXPECT_GE(much_better, 20) << "of " << draws;
}

TEST(SearchedOrders, KeepTheTapesThatWereAskedForOrAreRefusedWithWhatTheyNeed) {
  Outline outline = stages_of_gpt2("searched", 8, 16, {12000, 24000, 12000, 12000});
  for (const int percent : {80, 110, 150}) {
    outline.tapes_percent = percent;
    const PlannedStep step = make_program(outline, "searched");
    for (const RankMemory& rank : step.placement.ranks)
      EXPECT_LE(100 * rank.bytes[static_cast<int>(MemoryClass::activations)],
                percent * tapes_of_1f1b(outline));
  }
  outline.tapes_percent = 10;
  try {
    make_program(outline, "searched");
    ADD_FAILURE() << "a tenth of 1f1b's tapes";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::bad_configuration);
    const std::string said = error.what(), before = "was found that keeps it; 0.";
    ASSERT_THAT(said,
                testing::HasSubstr("schedule.memory is 0.10, and no order of schedule searched " + before));
    outline.tapes_percent = std::stoi(said.substr(said.find(before) + before.size(), 2));
    EXPECT_LT(outline.tapes_percent, 56) << "what the rows need";
    EXPECT_NO_THROW(make_program(outline, "searched")) << "what the sentence recommends: " << said;
  }
}

}  // namespace
}  // namespace mindpipe
