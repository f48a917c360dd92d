#pragma once
#include <gtest/gtest.h>

#include <string>

#include "program/plans.h"
#include "program/sample_outline.h"

namespace mindpipe {

/// Numbers of stages, from the first to the last.
struct StageCounts {
  int first, last;
};

/// Steps of one schedule with that many chunks of a stage, under that level of ZeRO: on each number of
/// stages, of 1 to 16 micro-batches.
inline StepsSummary steps_of_sizes(const std::string& schedule, int chunks, int zero, StageCounts counts) {
  StepsSummary steps;
  for (int p = counts.first; p <= counts.last; ++p)
    // A search of orders takes its time.
    for (int m = 1; m <= 16; m += schedule_named(schedule) == ScheduleKind::searched ? 5 : 1) {
      Outline outline = with_everything(equal_stages(p, m, chunks, {}, p < 4 ? 2 : 1));
      if (is_in_v(schedule)) outline = in_v(std::move(outline));
      outline.sharded_optimizer = zero > 0;
      outline.sharded_gradients = zero > 1;
      EXPECT_NO_THROW(steps.add(make_program(outline, schedule)))
          << schedule << " p " << p << " m " << m << " chunks " << chunks;
    }
  return steps;
}

}  // namespace mindpipe
