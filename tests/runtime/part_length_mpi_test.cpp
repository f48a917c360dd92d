// ranks: 2, thorough ranks: 4 8
#include <gtest/gtest.h>
#include <mpi.h>

#include "runtime/parity_cases.h"
#include "runtime/ranks.h"

namespace mindpipe {
namespace {

struct PartLength : ::testing::Test {
  const World world = all_ranks();
  /// How a step is laid out.
  struct Manner {
    GridConfig grid;
    int zero = 0;
    ScheduleKind schedule = ScheduleKind::one_forward_one_backward;
    bool sequence_parallel = false;
  };
  std::vector<Manner> manners() const {
    constexpr ScheduleKind halves = ScheduleKind::zero_bubble;
    if (world.size == 8) return {{{1, 2, 2, 2}, 0, halves, true}, {{1, 2, 2, 2}, 2, halves, true}};
    std::vector<Manner> all;
    for (const int zero : {0, 1, 2}) {
      if (world.size == 4) {
        all.push_back({{1, 2, 2, 1}, zero});
        continue;
      }
      all.push_back({{1, 1, world.size, 1}, zero});
      all.push_back({{1, world.size, 1, 1}, zero});
    }
    if (world.size == 4) {
      all.push_back({{1, 2, 2, 1}, 1, halves});
      all.push_back({{1, 1, 2, 2}, 1, ScheduleKind::one_forward_one_backward, true});
    }
    return all;
  }
  /// A tied table of 1 MiB in f32, on links of so many bytes a second.
  static Config tied(const Manner& manner, double rate) {
    Config c =
        tiny(Style::llama, static_cast<int>(manner.grid.tensor), static_cast<int>(manner.grid.data), 2, 8);
    c.model.gpt.tied = true;
    text_model(c).vocabulary = 4096;
    text_model(c).width = 64;
    text_model(c).heads = 4;
    c.grid = manner.grid;
    c.train.zero = manner.zero;
    c.train.sequence_parallel = manner.sequence_parallel;
    c.schedule.kind = manner.schedule;
    c.device.links = {8, 1e-6, rate, 1e-6, rate};
    return resolve(c);
  }
  /// The most parts that an action of this kind has in the lists.
  static int most_parts(const RunPlan& plan, ActionKind kind, Payload payload = Payload::none) {
    int most = 0;
    for (const auto& list : plan.training.program.ranks)
      for (const Action& action : list)
        if (action.kind == kind && action.payload == payload) most = std::max(most, action.parts);
    return most;
  }
};

TEST_F(PartLength, ChangesNoBit) {
  for (const Manner& manner : manners()) {
    const GridConfig& grid = manner.grid;
    const Outcome wanted = outcome_of(tied(manner, 1e12), world, 2);
    for (const double rate : {5e9, 1e8}) {
      const Config cut = tied(manner, rate);
      const RunPlan plan = make_run_plan(cut);
      EXPECT_EQ(plan.outline.part_bytes, rate == 1e8 ? 256 << 10 : 1'250'000);
      const int parts = static_cast<int>(4 / grid.tensor);  // of the table
      if (rate == 1e8 && grid.data > 1) {
        EXPECT_GE(most_parts(plan, ActionKind::reduce), parts);
      }
      if (rate == 1e8 && grid.pipeline > 1) {
        EXPECT_GE(most_parts(plan, ActionKind::send, Payload::unit_gradient),
                  manner.zero > 0 ? parts / 2 : parts);
      }
      EXPECT_EQ(difference(outcome_of(cut, world, 2), wanted), "") << describe(cut) << ", " << rate;
    }
  }
}

TEST_F(PartLength, ThatDiffersBetweenRanksIsRefused) {
  const Config c = tied({{1, 1, world.size, 1}}, 1e12);
  RunPlan plan = make_run_plan(c);
  if (world.rank == world.size - 1) plan.outline.part_bytes = 1 << 20;
  try {
    Worker worker(c, world, plan);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::bad_configuration);
    EXPECT_EQ(
        std::string(error.what()),
        fmt::format("rank 0 cuts sums and messages into parts of 4194304 bytes, and rank {} into parts of "
                    "1048576: the two ends of a transfer would not match; device.links and the file that "
                    "device.profile names must say the same on all machines",
                    world.size - 1));
  }
}

}  // namespace
}  // namespace mindpipe
