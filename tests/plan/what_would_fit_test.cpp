#include "plan/what_would_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/largest_memory.h"
#include "plan/memory_limits.h"

// What is said of a step that needs more memory than there is.
namespace mindpipe {
namespace {

/// A step of four stages whose device holds what micro-batches of `fitting` samples need, and no more.
Config step_for(int samples, int fitting) {
  Config c = read_config(std::string(MINDPIPE_SOURCE_DIR) + "/configs/bert-large.yaml",
                         {"device.kind=cuda", "grid.pipeline=4", "grid.data=1", "reproducible.data=1",
                          "train.batch=64", fmt::format("train.micro_batch={}", fitting)});
  c.memory.device_limit = largest_memory(c, WhichBlocks::none);
  c.train.micro_batch = samples;
  return resolve(c);
}

std::string refusal_of_step(const Config& config) {
  try {
    require_within(make_run_plan(config), config);
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::out_of_memory);
    return error.what();
  }
  return "accepted";
}

TEST(WhatWouldFit, NamesTheLargestMicroBatchThatFits) {
  EXPECT_EQ(refusal_of_step(step_for(4, 4)), "accepted");
  for (const int fitting : {2, 8}) {
    const Config c = step_for(16, fitting);
    EXPECT_THAT(refusal_of_step(c),
                ::testing::HasSubstr(fmt::format("; with train.micro_batch={} it would fit", fitting)));
  }
}

TEST(WhatWouldFit, NamesAsManyStagesAsItTakes) {
  const Config c = step_for(16, 8);
  const std::string text = what_would_fit(c, layout_of(c), false);
  Config longer = c;
  for (const int stages : {8, 16, 32}) {
    longer.grid.pipeline = stages;
    if (largest_memory(resolve(longer), WhichBlocks::none) > c.memory.device_limit) continue;
    EXPECT_THAT(text, ::testing::EndsWith(fmt::format("; on {} stages it would fit", stages)));
    return;
  }
  FAIL() << "no number of stages fits, so nothing was tested";
}

TEST(WhatWouldFit, SaysWhereNothingDoes) {
  Config c = step_for(16, 8);
  c.memory.device_limit = 1 << 20;
  EXPECT_THAT(refusal_of_step(c),
              ::testing::HasSubstr("no smaller train.micro_batch and no 2, 4 or 8 times"));
}

TEST(WhatWouldFit, CountsTapesThatMayBeComputedAgain) {
  Config c = step_for(1, 1);
  c.memory.device_limit = largest_memory(c, WhichBlocks::block);
  c.train.micro_batch = 2;
  const LayoutChoice layout = layout_of(resolve(c));
  EXPECT_THAT(what_would_fit(c, layout, true), ::testing::HasSubstr("with train.micro_batch=1 it would fit"));
  EXPECT_THAT(what_would_fit(c, layout, false),
              ::testing::Not(::testing::HasSubstr("with train.micro_batch=1 it would fit")));
}

}  // namespace
}  // namespace mindpipe
