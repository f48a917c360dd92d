// thorough ranks: 1 2 3 4, alone
#include <cublasLt.h>

#include <atomic>

#include "comm/made_nccl/made_nccl.h"
#include "kernels/made_cublasLt/made_cublasLt.h"
#include "products_by_library.h"
#include "runtime/asked_as_gpu.h"
#include "runtime/parity_compare.h"
#include "runtime/supernet_runs.h"

// Whole trainings whose products the GPU's own code asks of a library that stands in for cuBLASLt, and whose
// messages the NCCL transports carry over one that stands in for NCCL.
namespace mindpipe {
namespace {

std::unique_ptr<Backend> by_library(std::unique_ptr<Backend> device) {
  return std::make_unique<ProductsByLibrary>(std::move(device));
}

/// What stands over the processor's backend in a run, and what is planned for it.
struct Asked {
  Cover cover;
  RunPlan plan;
};
Asked asked_as_processor(const Config& config) { return {by_library, make_run_plan(config)}; }
Asked asked_as_gpu(const Config& config) {
  Workspace below;
  for (const RankFootprint& footprint : make_run_plan(config).footprints)
    below.include(footprint.passes.backend);
  return {[below](std::unique_ptr<Backend> device) {
            return std::make_unique<AskedAsGpu>(by_library(std::move(device)), below);
          },
          plan_as_gpu(config)};
}

/// One rank on a device that is not late.
template <class Ask>
Outcome outcome_of_one(const Ask& ask, const Config& config, const World& world, int steps) {
  Asked asked = ask(config);
  Worker worker(config, world, std::move(asked.plan),
                [&](const Config& c, Memory& memory, int threads, const World& ranks) {
                  return asked.cover(make_backend(c, memory, threads, ranks));
                });
  Outcome outcome;
  train_some(worker, steps, outcome);
  outcome.state = worker.state().digest();
  return outcome;
}

template <class Ask>
Outcome outcome_by_libraries(const Ask& ask, const Config& config, const World& world, int steps) {
  Asked asked = ask(config);
  const Outcome outcome = outcome_of_queued(
      config, world, steps, carried_by_nccl,
      [](Worker& worker, int count, Outcome& outcome) {
        made_nccl::close_connections();
        train_some(worker, count, outcome);
      },
      asked.cover, std::move(asked.plan));
  EXPECT_EQ(made_cublasLt::alive(), 0);
  EXPECT_EQ(made_nccl::alive(), 0);
  EXPECT_EQ(made_nccl::started() > 0, world.size > 1);
  made_nccl::begin();
  return outcome;
}

/// Compares what the libraries give of these layouts with one rank.
template <class Ask>
void compare_by_libraries(const std::vector<Config>& layouts, int steps, const Ask& ask) {
  compare(
      layouts, 0, steps,
      [&](const Config& c, const World& world, int n) { return outcome_by_libraries(ask, c, world, n); },
      [&](const Config& c, const World& world, int n) { return outcome_of_one(ask, c, world, n); });
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
  compare_by_libraries(some_layouts(4, 9), 3, asked_as_processor);
  EXPECT_GT(made_cublasLt::runs(), 1000);
  EXPECT_EQ(made_cublasLt::said(), "") << "nothing is refused";
}

TEST(MadeLibraries, GiveEveryLayoutTheBitsOfOneRankThatIsAskedAsAGpuIs) {
  made_cublasLt::begin();
  AskedAsGpu::products = AskedAsGpu::first = 0;
  compare_by_libraries(some_layouts(7, 12), 2, asked_as_gpu);
  EXPECT_GT(AskedAsGpu::first, 0);
  if (all_ranks().rank == 0) {  // which runs as one rank too, with all micro-batches
    EXPECT_LT(AskedAsGpu::first, AskedAsGpu::products) << "later micro-batches add";
  }
  EXPECT_EQ(made_cublasLt::said(), "") << "nothing is refused";
}

TEST(MadeLibraries, GiveTheseBitsWhereProductsAreRefusedAsTheyAreRun) {
  made_cublasLt::begin();
  std::atomic<int> refused = 0;
  made_cublasLt::refuse_to_run(
      [&](std::uint32_t epilogue) {
        const bool is_refused = epilogue != CUBLASLT_EPILOGUE_DEFAULT;
        refused += is_refused ? 1 : 0;
        return is_refused;
      },
      CUBLAS_STATUS_NOT_SUPPORTED);
  compare_by_libraries(some_layouts(5, 25), 2, asked_as_processor);
  if (all_ranks().rank == 0) {  // which runs as one rank too
    EXPECT_GT(refused, 0);
  }
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
