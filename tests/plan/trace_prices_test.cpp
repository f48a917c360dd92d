#include "plan/trace_prices.h"

#include <gtest/gtest.h>

#include "plan/run_plan.h"
#include "runtime/small_models.h"
#include "trace/run_at_ports.h"

namespace mindpipe {
namespace {

/// Four stages of two data ranks on one node, whose messages meet others at ports more often than not.
Config with_slow_links() {
  Config c = gpt2_style();
  c.grid = {1, 4, 2, 1};
  c.model.gpt.layers = 8;
  c.train.batch = 32;
  c.train.micro_batch = 2;
  c.schedule.kind = ScheduleKind::interleaved;
  c.schedule.chunks = 2;
  c.device.kind = DeviceKind::emulated;
  c.device.description = "core";
  c.device.links = {8, 1e-6, 2e7, 1e-6, 2e7};
  return resolve(c);
}

TEST(TracePrices, SayWhatMessagesAndSumsTakeThatWaitForNobody) {
  const Config config = with_slow_links();
  const RunPlan plan = make_run_plan(config);
  MadeRun run{.grid = {1, 2, 4, 1}, .plan = plan.training, .noise = 0.002, .travel = 0.002};
  run.paper = durations_of(run.plan.program, plan.outline, run.plan.network);
  const ReplayGraph graph(run.grid, run.plan.program);
  const StepTrace trace = trace_at_ports(run, run.plan.network, 12, 3);
  const ReplayTimes measured = measured_times(trace, graph);
  const TracePrices prices = fit_trace_prices(trace, graph, measured, config);
  EXPECT_NEAR(prices.message, 1, 0.02);
  EXPECT_NEAR(prices.data, 1, 0.02);
}

}  // namespace
}  // namespace mindpipe
