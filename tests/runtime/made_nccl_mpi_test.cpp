// ranks: 2, thorough ranks: 2 3 4, alone
#include <cstdlib>

#include "comm/made_nccl/made_nccl.h"
#include "runtime/parity_compare.h"
#include "runtime/supernet_runs.h"

// Whole trainings whose messages the real NCCL transports carry, over a library that stands in for NCCL and
// devices that run behind their hosts.
namespace mindpipe {
namespace {

int gradient_sums = 0;  ///< communicators that runs have made

/// What a run on several ranks has to leave of the library: messages that it carried, and no communicator.
/// Communicators of gradient sums, which run beside products, were bound to as many multiprocessors as they
/// may take.
void expect_used_and_left(int size) {
  EXPECT_EQ(made_nccl::alive(), 0);
  for (const made_nccl::Bound& bound : made_nccl::bounds())
    if (bound.communicator.find("gradient sums") != std::string::npos) {
      EXPECT_EQ(bound.multiprocessors, 16);
      ++gradient_sums;
    }
  if (size > 1) {
    EXPECT_GT(made_nccl::started(), 0);
  }
  made_nccl::begin();
}

Outcome outcome_by_nccl(const Config& config, const World& world, int steps) {
  const Outcome outcome = outcome_of_queued(config, world, steps, carried_by_nccl,
                                            [](Worker& worker, int count, Outcome& outcome) {
                                              made_nccl::close_connections();
                                              train_some(worker, count, outcome);
                                            });
  expect_used_and_left(world.size);
  return outcome;
}

/// From choice `first` on every `stride`-th of the covering layouts.
std::vector<Config> some_layouts(std::size_t first, std::size_t stride) {
  const int ranks = all_ranks().size;
  const std::vector<Choice> choices = covering_choices(ranks, ranks > 2 ? style_count - 2 : style_count);
  std::vector<Config> configs;
  for (std::size_t i = first; i < choices.size(); i += stride)
    configs.push_back(config_of(choices[i], ranks));
  return configs;
}

TEST(MadeNccl, CarriesEveryLayoutWithTheBitsOfOneRank) {
  gradient_sums = 0;
  compare(some_layouts(2, 5), 0, 3, outcome_by_nccl, outcome_of_steps);
  const char* part = std::getenv("MINDPIPE_CASES");
  if (part == nullptr || std::string(part) != "quick") {  // quick cases need not have data ranks
    EXPECT_GT(gradient_sums, 0);
  }
}

TEST(MadeNccl, MayDoItsWorkInTheBackground) {
  setenv("NCCL_COMM_BLOCKING", "0", 1);
  compare(some_layouts(3, 25), 0, 2, outcome_by_nccl, outcome_of_steps);
  unsetenv("NCCL_COMM_BLOCKING");
}

/// Lanes, stages and replicas of this many ranks; units move between lanes, and with cuts of their own
/// between stages.
std::vector<SupernetCase> supernets(int ranks) {
  std::vector<SupernetCase> cases;
  for (const int lanes : {1, 2, 3, 4})
    for (int pipeline = 1; pipeline * lanes <= ranks; ++pipeline) {
      if (ranks % (lanes * pipeline) != 0) continue;
      const int rest = ranks / (lanes * pipeline);
      cases.push_back({.pipeline = pipeline,
                       .data = rest <= 2 ? rest : 1,
                       .tensor = rest <= 2 ? 1 : 2,
                       .micro_batches = 1 + pipeline % 2,
                       .precision = lanes % 2 == 0 ? Precision::bf16 : Precision::f32,
                       .pairs = lanes == 2,
                       .subnets = 24,
                       .lanes = lanes,
                       .own_cuts = pipeline > 1});
    }
  std::erase_if(cases,
                [&](const SupernetCase& c) { return c.lanes * c.pipeline * c.data * c.tensor != ranks; });
  return cases;
}

TEST(MadeNccl, CarriesSubnetsOfLanesWithTheBitsOfOneAfterTheOther) {
  const World world = all_ranks();
  int number = 100 * world.size;
  for (const SupernetCase& c : supernets(world.size)) {
    const Config config = config_of(c);
    LateDevice late(carried_by_nccl);
    SupernetWatch watch = watch_of(late);
    watch.before = [&](Worker& worker) {
      made_nccl::close_connections();
      late.go_on_in_waits(worker);
    };
    const SubnetsOutcome got = trained(config, world, ++number, watch);
    expect_used_and_left(world.size);
    if (world.rank == 0) {
      EXPECT_EQ(difference(got, one_after_the_other(config)), "")
          << c.lanes << " lanes, pipeline " << c.pipeline << ", data " << c.data << ", tensor " << c.tensor;
    }
  }
}

}  // namespace
}  // namespace mindpipe
