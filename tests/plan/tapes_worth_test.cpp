// thorough
#include <gtest/gtest.h>

#include <ctime>

#include "plan/largest_memory.h"
#include "plan/layout_search.h"
#include "plan/priced_blocks.h"

// What a choice for each block's tape is worth, on paper, where memory is short.
namespace mindpipe {
namespace {

constexpr SearchFreedom free_tapes{.recompute = true, .swap = true};

Config eight_stages(const char* file, std::vector<std::string> settings) {
  for (const char* setting : {"grid.pipeline=8", "grid.data=1", "grid.tensor=1", "reproducible.tensor=1",
                              "reproducible.data=1", "train.zero=0", "schedule.kind=1f1b"})
    settings.insert(settings.begin(), setting);
  return read_config(std::string(MINDPIPE_SOURCE_DIR) + "/configs/" + file, settings);
}

LayoutCandidate simulated(const Config& config, WhichBlocks recompute, WhichBlocks swap) {
  LayoutCandidate one{.layout = layout_of(config)};
  one.layout.recompute = recompute;
  one.layout.swap = swap;
  simulate_layout(config, one);
  return one;
}

bool fits_with_chosen_tapes(const Config& config) {
  return !search_layouts(config, num_ranks(degrees_of(config.grid)), free_tapes).best.empty();
}

TEST(TapesWorth, AWideModelInTwoThirdsOfItsMemoryIsHardlySlower) {
  Config c = eight_stages(
      "gpt2-1.5b.yaml", {"model.layers=32", "model.width=4096", "model.heads=32", "model.context=4096",
                         "train.batch=16", "train.micro_batch=1", "train.precision=bf16", "device.kind=cuda",
                         "device.description=h200", "memory.device_limit=0"});
  const auto kept = static_cast<double>(simulated(c, WhichBlocks::none, WhichBlocks::none).step);
  const auto again = static_cast<double>(simulated(c, WhichBlocks::block, WhichBlocks::none).step);
  c.memory.device_limit = largest_memory(c, WhichBlocks::none) * 65 / 100;
  const LayoutSearch search = search_layouts(c, num_ranks(degrees_of(c.grid)), free_tapes);
  ASSERT_FALSE(search.best.empty());
  const LayoutCandidate& chosen = search.all[search.best.front()];
  RecordProperty("chosen", fmt::format("{:.3f}", static_cast<double>(chosen.step) / kept));
  EXPECT_LE(chosen.memory, c.memory.device_limit);
  EXPECT_LE(static_cast<double>(chosen.step), 1.03 * kept);
  EXPECT_GE(again, 1.22 * kept);
}

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// On one core, which may be half as fast as that for which the figures are: 0.2 and 10 seconds.
TEST(TapesWorth, TwoHundredBlocksOnSixteenStagesAreChosenInSeconds) {
  constexpr double patience = 2;
  Config c = read_config(
      MINDPIPE_SOURCE_DIR "/configs/gpt2-124m.yaml",
      {"model.layers=99", "model.vocabulary=512", "device.kind=cuda", "device.description=h200",
       "grid.pipeline=16", "grid.data=1", "grid.tensor=1", "reproducible.data=1", "reproducible.tensor=1",
       "train.zero=0", "train.batch=64", "train.micro_batch=1", "schedule.kind=1f1b"});
  const std::int64_t most = largest_memory(c, WhichBlocks::none),
                     least = largest_memory(c, WhichBlocks::block);
  PricedBlocks blocks;
  ASSERT_EQ(blocks.laid_out(c).all_blocks(), 200);
  for (const int percent : {20, 50, 80}) {
    c.memory.device_limit = least + (most - least) * percent / 100;
    double begin = processor_seconds();
    EXPECT_FALSE(blocks.cuts_fitting(c, {.swaps = true, .hidden = 1}, 100).empty());
    const double formulas = processor_seconds() - begin;
    begin = processor_seconds();
    EXPECT_TRUE(fits_with_chosen_tapes(c));
    const double all = processor_seconds() - begin;
    std::printf("%d %%: %.2f s, with the simulator %.1f s\n", percent, formulas, all);
    EXPECT_LE(formulas, patience * 0.2);
    EXPECT_LE(all, patience * 10);
  }
}

/// The largest micro-batch, in steps of `unit` samples, of which sixteen are a batch that fits.
int largest_micro_batch(Config config, ScheduleKind schedule, int unit,
                        const std::function<bool(const Config&)>& fits) {
  config.schedule.kind = schedule;
  const auto of = [&](int units) {
    Config other = config;
    other.train.micro_batch = unit * units;
    other.train.batch = 16 * other.train.micro_batch;
    return fits(resolve(other));
  };
  int least = 0, most = 64;
  while (most - least > 1) {
    const int middle = (least + most) / 2;
    (of(middle) ? least : most) = middle;
  }
  return unit * least;
}

TEST(TapesWorth, AMicroBatchOfBertGrowsFourfold) {
  const Config c = eight_stages(
      "bert-large.yaml", {"data.sequence=128", "train.batch=16", "train.micro_batch=1", "train.precision=f32",
                          "device.kind=cuda", "device.links.copies=11.0e9", "memory.device_limit=10.5GiB"});
  const ScheduleKind eager = ScheduleKind::one_forward_one_backward;
  const auto alike = [](WhichBlocks recompute) {
    return [recompute](const Config& config) {
      return largest_memory(config, recompute) <= config.memory.device_limit;
    };
  };
  const int kept = largest_micro_batch(c, eager, 8, alike(WhichBlocks::none)),
            again = largest_micro_batch(c, ScheduleKind::gpipe, 8, alike(WhichBlocks::block)),
            chosen = largest_micro_batch(c, eager, 8, fits_with_chosen_tapes);
  EXPECT_GE(chosen, 4 * kept) << "samples, where all tapes are kept";
  EXPECT_GE(5 * chosen, 9 * again) << "samples, where GPipe computes all blocks again";
}

}  // namespace
}  // namespace mindpipe
