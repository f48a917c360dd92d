// thorough ranks: 1 2 3 4, alone
#include <cublasLt.h>

#include "comm/made_nccl/made_nccl.h"
#include "kernels/made_cublasLt/made_cublasLt.h"
#include "products_by_library.h"
#include "runtime/parity_compare.h"
#include "runtime/supernet_runs.h"

// Whole trainings whose products the GPU's own code asks of a library that stands in for cuBLASLt, and whose
// messages the NCCL transports carry over one that stands in for NCCL.
namespace mindpipe {
namespace {

std::unique_ptr<Backend> by_library(std::unique_ptr<Backend> device) {
  return std::make_unique<ProductsByLibrary>(std::move(device));
}

/// One rank on a device that is not late.
Outcome outcome_of_one(const Config& config, const World& world, int steps) {
  Worker worker(config, world, make_run_plan(config),
                [](const Config& c, Memory& memory, int threads, const World& ranks) {
                  return by_library(make_backend(c, memory, threads, ranks));
                });
  Outcome outcome;
  train_some(worker, steps, outcome);
  outcome.state = worker.state().digest();
  return outcome;
}

Outcome outcome_by_libraries(const Config& config, const World& world, int steps) {
  const Outcome outcome = outcome_of_queued(
      config, world, steps, carried_by_nccl,
      [](Worker& worker, int count, Outcome& outcome) {
        made_nccl::close_connections();
        train_some(worker, count, outcome);
      },
      by_library);
  EXPECT_EQ(made_cublasLt::alive(), 0);
  EXPECT_EQ(made_nccl::alive(), 0);
  EXPECT_EQ(made_nccl::started() > 0, world.size > 1);
  made_nccl::begin();
  return outcome;
}

/// From choice `first` on every `stride`-th of the covering layouts; fewer on one rank, where nothing is cut,
/// and on many to a processor.
std::vector<Config> some_layouts(std::size_t first, std::size_t stride) {
  const int ranks = all_ranks().size;
  if (ranks == 1 || ranks == 4) stride *= 3;
  const std::vector<Choice> choices = covering_choices(ranks, style_count - 2);
  std::vector<Config> configs;
  for (std::size_t i = first; i < choices.size(); i += stride)
    configs.push_back(config_of(choices[i], ranks));
  return configs;
}

TEST(MadeLibraries, GiveEveryLayoutTheBitsOfOneRank) {
  made_cublasLt::begin();
  compare(some_layouts(4, 9), 0, 3, outcome_by_libraries, outcome_of_one);
  EXPECT_GT(made_cublasLt::runs(), 1000);
}

TEST(MadeLibraries, GiveTheseBitsWhereProductsAreRefusedAsTheyAreRun) {
  made_cublasLt::begin();
  made_cublasLt::refuse_to_run(
      [](std::uint32_t epilogue) { return epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS; },
      CUBLAS_STATUS_NOT_SUPPORTED);
  compare(some_layouts(5, 25), 0, 2, outcome_by_libraries, outcome_of_one);
  made_cublasLt::begin();
}

TEST(MadeLibraries, GiveSubnetsOfLanesTheBitsOfOneRank) {
  const World world = all_ranks();
  const SupernetCase c{.pipeline = world.size % 2 == 0 ? world.size / 2 : 1,
                       .precision = Precision::bf16,
                       .subnets = 16,
                       .lanes = world.size % 2 == 0 ? 2 : world.size,
                       .own_cuts = world.size == 4};
  Config config = config_of(c);
  LateDevice late(carried_by_nccl, by_library);
  const SubnetsOutcome got = trained(config, world.size == 1 ? World{} : world, 0, watch_of(late));
  EXPECT_EQ(made_nccl::alive(), 0);
  made_nccl::begin();
  config.grid = {1, 1, 1, 1};
  config.supernet.cuts = SubnetCuts::home;
  LateDevice alone({}, by_library);
  const SubnetsOutcome wanted = trained(config, World{MPI_COMM_SELF}, 0, watch_of(alone));
  if (world.rank == 0) {
    EXPECT_EQ(difference(got, wanted), "");
  }
}

}  // namespace
}  // namespace mindpipe
