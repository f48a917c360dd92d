// ranks: 2 4
#include <gtest/gtest.h>
#include <mpi.h>

#include <map>

#include "runtime/parity_cases.h"

namespace mindpipe {
namespace {

using Lines = std::map<std::pair<Axis, TrafficClass>, std::int64_t>;

/// Bytes that all ranks together send in a step of GPT-2's style, by the formulas; 64 divides all extents, so nothing is padded but the
/// vocabulary.
Lines expected(const Config& c) {
  const std::int64_t p = c.grid.pipeline, d = c.grid.data, t = c.grid.tensor, messages = p > 1 ? p * c.schedule.chunks - 1 : 0;
  const std::int64_t h = c.model.width, layers = c.model.layers, e = c.train.precision == "bf16" ? 2 : 4, zero = c.train.zero;
  const std::int64_t tokens = c.train.micro_batch * c.data.sequence, activation = e * tokens * h,
                     micro_batches = c.train.batch / c.train.micro_batch;
  const std::int64_t unit = 64 * c.reproducible.tensor, table = (c.model.vocabulary + unit - 1) / unit * unit * h, homes = p > 1 ? 2 : 1;
  const std::int64_t positions = c.model.context * h, norms = (2 * layers + 1) * 2 * h, outer_biases = 2 * layers * h;
  const std::int64_t cut = layers * (3 * h * h + 3 * h + h * h + 2 * h * c.model.mlp_width + c.model.mlp_width),
                     whole = positions + norms + outer_biases;
  Lines lines;
  // Tensor: 4 sums per layer and micro-batch (6 when recomputed), the embedding's and the classifier's; a sum is 2 (t-1) times its bytes,
  // as is a gather and a scatter. The classifier's softmax adds a maximum and three sums of every token, f32.
  const std::int64_t sums = layers * (c.train.recompute == "block" ? 6 : 4) + 2;
  lines[{Axis::tensor, TrafficClass::tensor}] = micro_batches * 2 * (t - 1) * (sums * activation + 16 * tokens);
  // With sequence parallelism, what sees rows only is summed once for each logical data shard.
  if (c.train.sequence_parallel) lines[{Axis::tensor, TrafficClass::tensor}] += c.reproducible.data * 2 * (t - 1) * 4 * whole;
  lines[{Axis::pipeline, TrafficClass::pipeline}] = 2 * messages * micro_batches * activation * (c.train.sequence_parallel ? 1 : t);
  lines[{Axis::pipeline, TrafficClass::gradients}] = homes == 1 ? 0 : 2 * 4 * table * (zero > 0 ? 1 : d);
  // Data: what every tensor rank holds travels t times; each use of the table has a sum of its own, each home gathers.
  lines[{Axis::data, TrafficClass::gradients}] = (zero > 0 ? 1 : 2) * (d - 1) * 4 * (cut + 2 * table + t * whole);
  lines[{Axis::data, TrafficClass::values}] = zero > 0 ? (d - 1) * e * (cut + homes * table + t * whole) : 0;
  const std::int64_t tensors = 12 * layers + 4;  // six a block, the table, positions, the last norm
  if (zero == 0) lines[{Axis::data, TrafficClass::scalars}] = p * t * 2 * (d - 1) * 8 * 2;   // loss, valid tokens
  lines[{Axis::tensor, TrafficClass::scalars}] = p * d * 2 * (t - 1) * 8 * tensors;          // squares
  lines[{Axis::pipeline, TrafficClass::scalars}] = d * t * 2 * (p - 1) * 8 * (1 + tensors);  // loss, squares
  return lines;
}

Config wide(const GridConfig& grid) {
  Config c = tiny(Style::gpt2, 2, 2, 2);
  c.model.width = 128, c.model.mlp_width = 256, c.model.heads = 4;
  c.grid = grid;
  if (grid.data == 4) c.reproducible.data = 4, c.train.batch = 16;
  return c;
}

/// The tensor sums of one step: what the trace has is what the ledger has, and what the plan's passes say but for the sums over T-ths of
/// the sequence, which come once for each shard.
void compare_sums(Worker& worker, const Config& config) {
  const TrafficLedger::Line& sent = worker.ledger().of(Axis::tensor, TrafficClass::tensor);
  const Recorder& recorder = worker.executor().recorder();
  std::int64_t calls = 0, bytes = 0, planned_calls = 0, planned_bytes = 0;
  for (const Recorder::Sum& sum : recorder.sums(recorder.held() - 1)) {
    ++calls, bytes += sum.bytes;
    EXPECT_LE(sum.start, sum.end);
  }
  for (const Action& action : worker.executor().list())
    if (!is_communication(action)) planned_calls += action.sums, planned_bytes += action.bytes;
  EXPECT_EQ(calls, sent.calls) << describe(config);
  EXPECT_EQ(bytes, sent.bytes) << describe(config);
  if (config.train.sequence_parallel) return;
  EXPECT_EQ(planned_calls, sent.calls) << describe(config);
  EXPECT_EQ(planned_bytes, sent.bytes) << describe(config);
}

void compare(const Config& config) {
  World world{MPI_COMM_WORLD};
  MPI_Comm_rank(world.comm, &world.rank);
  MPI_Comm_size(world.comm, &world.size);
  Worker worker(config, world);
  worker.waiting().set_crowded(true);
  Feed feed(worker.config(), worker.layout());
  worker.ledger().clear();
  worker.executor().run(feed.at(0));
  compare_sums(worker, config);
  for (const auto& [line, bytes] : expected(config)) {
    std::int64_t sent = worker.ledger().of(line.first, line.second).bytes, all = 0;
    MPI_Allreduce(&sent, &all, 1, MPI_INT64_T, MPI_SUM, world.comm);
    EXPECT_EQ(all, bytes) << name_of(line.first) << " " << name_of(line.second) << ": " << describe(config);
  }
}

TEST(Ledger, IsTheVolumeOfTheFormulasExactly) {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (const GridConfig& grid : grids_of(ranks)) {
    if (grid.tensor == 4) continue;  // heads of an eighth would be padded
    for (const char* precision : {"f32", "bf16"}) {
      Config c = wide(grid);
      c.train.precision = precision;
      compare(resolve(c));
      for (int zero : {1, 2})
        if (grid.data > 1) c.train.zero = zero, compare(resolve(c));
      if (grid.tensor > 1) c.train.sequence_parallel = true, compare(resolve(c));
    }
    Config recomputed = wide(grid), interleaved = wide(grid), halves = wide(grid);
    recomputed.train.recompute = "block", interleaved.schedule.kind = "interleaved", interleaved.schedule.chunks = 2,
    halves.schedule.kind = "zb-h1";
    for (const Config& c : {recomputed, interleaved, halves}) compare(resolve(c));
  }
}

TEST(Ledger, IsExactAlsoWhereSumsGoInParts) {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int zero : {0, 1, 2}) {
    Config c = wide({1, ranks / 2, 2, 1});
    c.model.vocabulary = 40064;
    c.train.zero = zero;
    c = resolve(c);
    int parts = 0;
    for (const auto& list : make_run_plan(c).step.program.ranks)
      for (const Action& action : list) parts = std::max(parts, action.parts);
    EXPECT_EQ(parts, 6) << "a table of 20 MB";
    compare(c);
  }
}

}  // namespace
}  // namespace mindpipe
