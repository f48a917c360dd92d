// ranks: 2, thorough ranks: 4
#include <gtest/gtest.h>
#include <mpi.h>

#include "runtime/parity_cases.h"
#include "runtime/ranks.h"

namespace mindpipe {
namespace {

struct PartLength : ::testing::Test {
  const World world = all_ranks();
  /// A tied table of 1 MiB in f32, on links of so many bytes a second.
  Config tied(const GridConfig& grid, int zero, double rate) const {
    Config c = tiny(Style::llama, 1, grid.data, 2, 8);
    c.model.gpt.tied = true;
    text_model(c).vocabulary = 4096;
    text_model(c).width = 64;
    text_model(c).heads = 4;
    c.grid = grid;
    c.train.zero = zero;
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
  std::vector<GridConfig> grids = {{1, 1, world.size, 1}, {1, world.size, 1, 1}};
  if (world.size == 4) grids = {{1, 2, 2, 1}};
  for (const GridConfig& grid : grids)
    for (const int zero : {0, 1, 2}) {
      const Config whole = tied(grid, zero, 1e12);
      const Outcome wanted = outcome_of(whole, world, 2);
      for (const double rate : {5e9, 1e8}) {
        const Config cut = tied(grid, zero, rate);
        const RunPlan plan = make_run_plan(cut);
        EXPECT_EQ(plan.outline.part_bytes, rate == 1e8 ? 256 << 10 : 1'250'000);
        if (rate == 1e8 && grid.data > 1) {
          EXPECT_GE(most_parts(plan, ActionKind::reduce), 4);
        }
        if (rate == 1e8 && grid.pipeline > 1) {
          EXPECT_GE(most_parts(plan, ActionKind::send, Payload::unit_gradient), zero > 0 ? 2 : 4);
        }
        EXPECT_EQ(difference(outcome_of(cut, world, 2), wanted), "") << describe(cut) << ", " << rate;
      }
    }
}

TEST_F(PartLength, ThatDiffersBetweenRanksIsRefused) {
  const Config c = tied({1, 1, world.size, 1}, 0, 1e12);
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
