// ranks: 1, thorough ranks: 2
#include "plans/workspace.h"
#include "runtime/asked_as_gpu.h"
#include "runtime/supernet_runs.h"

// On a GPU nobody zeroes what a subnet's first product for a weight writes: gradients of subnets take turns
// in rooms where those of others have been.
namespace mindpipe {
namespace {

/// A plan for a GPU, whose own working memory is the processor's.
RunPlan subnets_as_gpu(const Config& config, const std::vector<Subnet>& subnets, int number) {
  Config gpu = config;
  gpu.device.kind = DeviceKind::cuda;
  const RunPlan below = drawn_plan(config, subnets, number);
  RunPlan plan = drawn_plan(resolve(gpu), subnets, number);
  for (std::size_t rank = 0; rank < plan.memory.size(); ++rank)
    for (BytesByClass& bytes : plan.memory[rank])
      bytes[static_cast<int>(MemoryClass::workspace)] +=
          static_cast<std::int64_t>(below.footprints[rank].passes.backend.total()) -
          static_cast<std::int64_t>(plan.footprints[rank].passes.backend.total()) - gpu_workspace_bytes;
  return plan;
}

SupernetWatch watch_as_gpu(const Config& config, bool adds = false) {
  Workspace below;
  for (const RankFootprint& rank :
       make_run_plan(config, Purpose::training, first_of_stream(config)).footprints)
    below.include(rank.passes.backend);
  SupernetWatch watch;
  watch.make = [below, adds](const Config& of, Memory& memory, int threads, const World& world) {
    return std::make_unique<AskedAsGpu>(make_backend(of, memory, threads, world), below, adds);
  };
  watch.plan = subnets_as_gpu;
  return watch;
}

/// Spaces of texts, pairs, cells and pictures, on lanes and on stages where there are ranks for them.
std::vector<SupernetCase> cases_as_gpu(int ranks) {
  std::vector<SupernetCase> cases;
  for (const bool in_lanes : {false, true}) {
    if (ranks == 1 && in_lanes) continue;
    const int stages = in_lanes ? 1 : ranks, lanes = in_lanes ? ranks : 1;
    const SupernetCase common{.pipeline = stages, .micro_batches = 2, .subnets = 24, .lanes = lanes};
    for (int kind = 0; kind < 4; ++kind) {
      SupernetCase c = common;
      c.pairs = kind == 1;
      c.cells = kind == 2;
      c.pictures = kind == 3;
      c.precision = kind % 2 == 1 ? Precision::bf16 : Precision::f32;
      cases.push_back(c);
    }
  }
  return cases;
}

TEST(FirstProductsOfSubnets, WriteGradientsThatNobodyHasZeroed) {
  const World world = all_ranks();
  int number = 0;
  for (const SupernetCase& c : cases_as_gpu(world.size)) {
    SCOPED_TRACE(fmt::format("case {}", number));
    const Config config = config_of(c);
    AskedAsGpu::products = AskedAsGpu::first = 0;
    const SubnetsOutcome got = trained(config, world, number++, watch_as_gpu(config));
    EXPECT_GT(AskedAsGpu::first, 0);
    EXPECT_LT(AskedAsGpu::first, AskedAsGpu::products) << "later micro-batches add";
    if (world.rank == 0) {
      EXPECT_EQ(difference(got, one_after_the_other(config)), "");
    }
  }
}

TEST(FirstProductsOfSubnets, ThatAddAllTheSameAreNoticed) {
  const World world = all_ranks();
  const Config config = config_of(cases_as_gpu(world.size).front());
  const SubnetsOutcome got = trained(config, world, 0, watch_as_gpu(config, true));
  if (world.rank == 0) {
    EXPECT_NE(difference(got, one_after_the_other(config)), "");
  }
}

}  // namespace
}  // namespace mindpipe
