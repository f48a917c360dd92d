#pragma once
#include <gtest/gtest.h>

#include <map>

#include "runtime/parity_cases.h"

// What a step sent, beside what its plan says that it sends.
namespace mindpipe {

/// The tensor sums of one step: what the trace has is what the ledger has, and what the plan's passes say but
/// for the sums over T-ths of the sequence, which come once for each shard. Where a micro-batch's targets are
/// no equal parts for the tensor ranks, the plan says what the first of them sends.
inline void compare_sums(Worker& worker) {
  const Config& config = worker.config();
  const TrafficLedger::Sent& sent = worker.ledger().of(Axis::tensor, TrafficClass::tensor);
  const Recorder& recorder = worker.executor().recorder(worker.training());
  std::int64_t calls = 0, bytes = 0, planned_calls = 0, planned_bytes = 0;
  for (const Recorder::Sum& sum : recorder.sums(recorder.held() - 1)) {
    ++calls;
    bytes += sum.bytes;
    EXPECT_LE(sum.start, sum.end);
  }
  for (const Action& action : worker.training().list)
    if (is_pass(action)) {
      planned_calls += action.sums;
      planned_bytes += action.bytes;
    }
  EXPECT_EQ(calls, sent.calls) << describe(config);
  EXPECT_EQ(bytes, sent.bytes) << describe(config);
  const bool as_the_first =
      config.train.micro_batch * worker.stage().model().targets_per_sample() % config.grid.tensor == 0 ||
      worker.layout().coord.tensor == 0;
  if (config.train.sequence_parallel || !as_the_first) return;
  EXPECT_EQ(planned_calls, sent.calls) << describe(config);
  EXPECT_EQ(planned_bytes, sent.bytes) << describe(config);
}

/// What the plan says that a rank sends in its sums over data is the mean of its replicas, but for rounding.
inline void compare_reduces(Worker& worker) {
  const Config& config = worker.config();
  std::int64_t planned = 0, rounded = 0, sent = worker.ledger().of(Axis::data, TrafficClass::gradients).bytes;
  for (const Action& action : worker.training().list)
    if (action.kind == ActionKind::reduce) {
      planned += config.grid.data * action.bytes;
      rounded += 3 * config.grid.data;
    }
  worker.group(Axis::data).sum_integers({&sent, 1});
  EXPECT_NEAR(static_cast<double>(planned), static_cast<double>(sent), static_cast<double>(rounded))
      << describe(config);
}

/// How often this rank calls in a step: once for each message of its list, each sum and gather of a unit's
/// part, and each scalar; tensor sums are counted by `compare_sums`.
inline std::map<std::pair<Axis, TrafficClass>, std::int64_t> expected_calls(Worker& worker) {
  const Coord& grid = worker.layout().grid;
  std::map<std::pair<Axis, TrafficClass>, std::int64_t> calls;
  for (const Action& action : worker.training().list) {
    if (action.kind == ActionKind::send) ++calls[{Axis::pipeline, class_of(action)}];
    if (grid.data == 1) continue;
    if (action.kind == ActionKind::reduce || action.kind == ActionKind::gather)
      ++calls[{Axis::data, class_of(action)}];
  }
  const bool sharded = worker.config().train.zero > 0,
             measured = worker.config().train.noise_every == 1 && worker.layout().data_shards > 1;
  if (grid.data > 1) {
    std::int64_t& over_data = calls[{Axis::data, TrafficClass::scalars}];
    over_data = 2 + (sharded ? 1 : 0);
    if (measured) over_data += 1 + (sharded ? 1 : 0);
  }
  if (grid.tensor > 1) calls[{Axis::tensor, TrafficClass::scalars}] = measured ? 2 : 1;
  if (grid.pipeline > 1) calls[{Axis::pipeline, TrafficClass::scalars}] = measured ? 2 : 1;
  return calls;
}

/// A step's traffic as far as the plan alone has it: calls of each kind, tensor sums, sums over data.
inline void compare_with_plan(Worker& worker) {
  const auto calls = expected_calls(worker);
  for (Axis axis : axes)
    for (TrafficClass kind : traffic_classes) {
      if (kind == TrafficClass::tensor) continue;
      const auto found = calls.find({axis, kind});
      EXPECT_EQ(worker.ledger().of(axis, kind).calls, found == calls.end() ? 0 : found->second)
          << name_of(axis) << " " << name_of(kind) << ": " << describe(worker.config());
    }
  compare_sums(worker);
  compare_reduces(worker);
}

}  // namespace mindpipe
