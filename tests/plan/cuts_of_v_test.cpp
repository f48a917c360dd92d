#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "config/config.h"
#include "plan/priced_blocks.h"
#include "plan/run_plan.h"

// Cuts of a V that know how large tapes are.
namespace mindpipe {
namespace {

/// A bundled model, nothing of which is computed again, on stages of GPUs.
Config staged(const std::string& model, int stages, const std::string& schedule) {
  return read_config(std::string(MINDPIPE_SOURCE_DIR) + "/configs/" + model + ".yaml",
                     {"device.kind=cuda", "device.description=h200", fmt::format("grid.pipeline={}", stages),
                      "grid.data=1", "grid.tensor=1", "reproducible.data=1", "reproducible.tensor=1",
                      "train.zero=0", "train.recompute=none", fmt::format("train.batch={}", 8 * stages),
                      "train.micro_batch=2", "schedule.kind=" + schedule});
}

std::int64_t largest_tapes(const RunPlan& plan) {
  std::int64_t most = 0;
  for (int stage = 0; stage < plan.outline.stages; ++stage)
    most = std::max(most, plan.most_memory(stage)[static_cast<int>(MemoryClass::activations)]);
  return most;
}

/// Tapes and step of a schedule, as shares of those of 1f1b.
std::pair<double, double> beside_1f1b(const std::string& model, int stages, const std::string& schedule) {
  const RunPlan plan = make_run_plan(staged(model, stages, schedule)),
                other = make_run_plan(staged(model, stages, "1f1b"));
  return {
      static_cast<double>(largest_tapes(plan)) / static_cast<double>(largest_tapes(other)),
      static_cast<double>(plan.training.expected.step) / static_cast<double>(other.training.expected.step)};
}

TEST(CutsOfV, KeepTheTapesOfASchedule) {
  struct Row {
    const char *model, *schedule;
    double tapes, step;
  };
  for (const Row& row : {Row{"gpt2-1.5b", "zb-v", 1.12, 0.96},
                         {"gpt2-1.5b", "dualpipe-v", 1.15, 0.94},
                         {"gpt2-1.5b", "v-half", 0.77, 1.08},
                         {"llama-8b", "zb-v", 1.15, 0.98},
                         {"llama-8b", "dualpipe-v", 1.16, 0.91},
                         {"llama-8b", "v-half", 0.77, 1.07},
                         {"bert-large", "zb-v", 1.10, 0.97},
                         {"bert-large", "dualpipe-v", 1.13, 0.94},
                         {"bert-large", "v-half", 0.79, 1.11}}) {
    const auto [tapes, step] = beside_1f1b(row.model, 8, row.schedule);
    EXPECT_LE(tapes, row.tapes) << row.model << ' ' << row.schedule;
    EXPECT_LE(step, row.step) << row.model << ' ' << row.schedule;
  }
}

TEST(CutsOfV, AreTheSameWhereTheyAreRemembered) {
  PricedBlocks blocks;
  std::set<std::vector<int>> different;
  for (const char* schedule : {"zb-v", "v-half", "zb-v"})
    for (const auto& [stages, data, micro_batch] : {std::tuple{4, 1, 2}, {8, 1, 2}, {4, 2, 2}, {4, 1, 1}})
      for (const ChosenBlocks& recomputed : {ChosenBlocks(), ChosenBlocks({1, 2, 3, 4, 5, 6})}) {
        Config config = staged("bert-large", stages, schedule);
        config.grid.data = config.reproducible.data = data;
        config.train.micro_batch = micro_batch;
        config.train.recompute = recomputed;
        config.device.links.ranks_per_node = 4;  // data ranks make messages leave their node
        const std::vector<int> cuts = blocks.laid_out(config).first_block;
        EXPECT_EQ(cuts, make_run_plan(config).outline.first_block)
            << schedule << ' ' << stages << ' ' << data;
        different.insert(cuts);
      }
  EXPECT_GE(different.size(), 8U);
}

TEST(CutsOfV, AreThoseThatWereSaid) {
  Config config = staged("bert-large", 2, "zb-v");
  config.schedule.cuts = {10, 20, 40};
  EXPECT_THAT(make_run_plan(config).outline.first_block, testing::ElementsAre(0, 10, 20, 40, 50));
}

}  // namespace
}  // namespace mindpipe
