#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config.h"
#include "plan/memory_limits.h"
#include "program/sample_outline.h"

// Plans in which masters and moments are kept on the host.
namespace mindpipe {
namespace {

TEST(StateOnTheHost, LetsLlamaFitOneDeviceForAFewPercentOfALargeStep) {
  const auto planned = [](const char* place) {
    return make_run_plan(
        read_config(std::string(MINDPIPE_SOURCE_DIR) + "/configs/llama-8b.yaml",
                    {"device.kind=cuda", "grid.pipeline=1", "grid.data=1", "grid.tensor=1",
                     "reproducible.tensor=1", "reproducible.data=1", "train.batch=128", "train.micro_batch=1",
                     "train.recompute=block", std::string("memory.optimizer=") + place}));
  };
  const RunPlan device = planned("device"), host = planned("host");
  constexpr std::int64_t gib = std::int64_t{1} << 30, of_h200 = 139 * gib;
  EXPECT_FALSE(fits(device, of_h200));
  EXPECT_TRUE(fits(host, of_h200));
  const auto optimizer = static_cast<int>(MemoryClass::optimizer);
  EXPECT_EQ(host.most_on_host(0), device.most_memory(0)[optimizer]);
  EXPECT_EQ(device.most_on_host(0), 0);
  const double longer =
      static_cast<double>(host.training.expected.step) / static_cast<double>(device.training.expected.step);
  EXPECT_GT(longer, 1);
  EXPECT_LE(longer, 1.03) << "of a step of a million tokens";
  EXPECT_NO_THROW(require_host_fit(host, host.most_on_host(0)));
  EXPECT_THROW(require_host_fit(host, host.most_on_host(0) - 1), Error);
}

/// Copies of two units are hidden under the passes; behind the scalars each slot waits for who was there.
TEST(StateOnTheHost, TakesWhatItsCopiesTake) {
  constexpr std::int64_t update = 100'000, copy = 1'000'000;
  Outline outline = equal_stages(1, 4, 1, {.forward = 1'000'000, .backward = 2'000'000}, 4);
  for (UnitCost& unit : outline.units) {
    unit.update = update;
    unit.state = 2'000'000;
  }
  Network network;
  network.copies = {.picoseconds_per_byte = 500, .level = Level::copies};
  const auto step = [&](const Outline& of) { return make_program(of, "1f1b", network).expected.step; };
  EXPECT_EQ(step(kept_on_host(outline)) - step(outline), 4 * copy - 2 * update);
}

}  // namespace
}  // namespace mindpipe
