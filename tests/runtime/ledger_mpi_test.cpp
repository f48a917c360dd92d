// ranks: 2, thorough ranks: 4 8
#include <gtest/gtest.h>
#include <mpi.h>

#include "runtime/parity_cases.h"
#include "runtime/ranks.h"
#include "runtime/volumes.h"

namespace mindpipe {
namespace {

/// Takes extents that are whole multiples of 64 in every shard.
void widen(Config& c, Style style) {
  BlockSettings& m = block_model(c);
  m.width = c.reproducible.tensor > 2 ? 64 * c.reproducible.tensor : 128;
  m.mlp_width = 2 * m.width;
  m.heads = c.reproducible.tensor % 3 == 0 ? 6 : 4;
  c.model.gpt.key_value_heads = style == Style::llama && c.reproducible.tensor == 2 ? 2 : m.heads;
  if (style == Style::transformer) {  // a source that is longer than its target
    text_model(c).context = 2 * c.data.sequence;
    c.data.source_sequence = 2 * c.data.sequence;
  }
}

/// A model of which `Sizes` knows what is padded, in chunks of about as many blocks.
Config wide(Style style, const GridConfig& grid,
            ScheduleKind schedule = ScheduleKind::one_forward_one_backward, int shards_of_rank = 1) {
  Config c =
      tiny(style, std::max(2, shards_of_rank * grid.tensor), std::max(2, shards_of_rank * grid.data), 2);
  c.grid = grid;
  c.schedule.kind = schedule;
  c.schedule.chunks = row_of(schedule).has_chunks ? 2 : 1;
  if (style != Style::wide_resnet) widen(c, style);
  const int blocks = Sizes(c).last() + 1, chunks = grid.pipeline * c.schedule.chunks;
  for (int i = 1; i < chunks; ++i) c.schedule.cuts.push_back(i * blocks / chunks);
  return c;
}

/// The tensor sums of one step: what the trace has is what the ledger has, and what the plan's passes say but
/// for the sums over T-ths of the sequence, which come once for each shard. Where a micro-batch's targets are
/// no equal parts for the tensor ranks, the plan says what the first of them sends.
void compare_sums(Worker& worker, const Config& config) {
  const TrafficLedger::Sent& sent = worker.ledger().of(Axis::tensor, TrafficClass::tensor);
  const Recorder& recorder = worker.executor().recorder(worker.training());
  std::int64_t calls = 0, bytes = 0, planned_calls = 0, planned_bytes = 0;
  for (const Recorder::Sum& sum : recorder.sums(recorder.held() - 1)) {
    ++calls;
    bytes += sum.bytes;
    EXPECT_LE(sum.start, sum.end);
  }
  for (const Action& action : worker.training().list)
    if (!is_communication(action)) {
      planned_calls += action.sums;
      planned_bytes += action.bytes;
    }
  EXPECT_EQ(calls, sent.calls) << describe(config);
  EXPECT_EQ(bytes, sent.bytes) << describe(config);
  const bool as_the_first = config.train.micro_batch * Sizes(config).targets() % config.grid.tensor == 0 ||
                            worker.layout().coord.tensor == 0;
  if (config.train.sequence_parallel || !as_the_first) return;
  EXPECT_EQ(planned_calls, sent.calls) << describe(config);
  EXPECT_EQ(planned_bytes, sent.bytes) << describe(config);
}

/// What the plan says that a rank sends in its sums over data is the mean of its replicas, but for rounding.
void compare_reduces(Worker& worker, const Config& config) {
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
std::map<std::pair<Axis, TrafficClass>, std::int64_t> expected_calls(Worker& worker) {
  const Coord& grid = worker.layout().grid;
  std::map<std::pair<Axis, TrafficClass>, std::int64_t> calls;
  for (const Action& action : worker.training().list) {
    if (action.kind == ActionKind::send) ++calls[{Axis::pipeline, class_of(action)}];
    if (grid.data == 1) continue;
    if (action.kind == ActionKind::reduce || action.kind == ActionKind::gather)
      ++calls[{Axis::data, class_of(action)}];
  }
  if (grid.data > 1) calls[{Axis::data, TrafficClass::scalars}] = worker.config().train.zero > 0 ? 3 : 2;
  if (grid.tensor > 1) calls[{Axis::tensor, TrafficClass::scalars}] = 1;
  if (grid.pipeline > 1) calls[{Axis::pipeline, TrafficClass::scalars}] = 1;
  return calls;
}

/// A step on all ranks beside the formulas: every line of each rank's own ledger, those that have to be empty
/// too.
void compare(const Config& given) {
  const Config config = resolve(given);
  const World world = all_ranks();
  Worker worker(config, world);
  worker.waiting().set_crowded(true);
  BatchFeed feed(worker.config(), worker.layout());
  worker.ledger().clear();
  worker.steps().run(feed.at(0));
  compare_sums(worker, config);
  Coord here = worker.layout().coord;
  TrafficLines expected = expected_traffic(config, here);
  auto calls = expected_calls(worker);
  for (Axis axis : axes)
    for (TrafficClass kind : traffic_classes) {
      const TrafficLedger::Sent& line = worker.ledger().of(axis, kind);
      std::vector<std::int64_t> of_ranks(static_cast<std::size_t>(world.size));
      MPI_Allgather(&line.bytes, 1, MPI_INT64_T, of_ranks.data(), 1, MPI_INT64_T, world.comm);
      const auto [bytes, of_replicas] = expected[{axis, kind}];
      std::int64_t sent = of_replicas ? 0 : line.bytes;
      for (here.data = 0; of_replicas && here.data < config.grid.data; ++here.data)
        sent += of_ranks[rank_at(worker.layout().grid, here)];
      EXPECT_EQ(sent, bytes) << name_of(axis) << " " << name_of(kind) << " of rank " << world.rank << ": "
                             << describe(config);
      if (kind != TrafficClass::tensor) {
        EXPECT_EQ(line.calls, (calls[{axis, kind}]))
            << name_of(axis) << " " << name_of(kind) << " of rank " << world.rank << ": " << describe(config);
      }
    }
  compare_reduces(worker, config);
}

/// Every grid of 2 and 4 ranks; of 8 those with all axes, and with the most tensor ranks beside another axis.
std::vector<GridConfig> grids_to_count(int ranks) {
  std::vector<GridConfig> grids = grids_of(ranks);
  std::erase_if(grids, [&](const GridConfig& g) {
    return ranks == 8 && !(g.pipeline == 2 && g.data == 2) && !(g.tensor == 4 && g.data * g.pipeline == 2);
  });
  return grids;
}

class Ledger : public ::testing::TestWithParam<Style> {};

TEST_P(Ledger, IsTheVolumeOfTheFormulasExactly) {
  int cases = 0;
  for (const GridConfig& grid : grids_to_count(all_ranks().size)) {
    const auto try_one = [&](Precision precision, int zero, bool sequence_parallel, bool recomputed = false,
                             ScheduleKind schedule = ScheduleKind::one_forward_one_backward) {
      if ((zero > 0 && grid.data == 1) || (sequence_parallel && grid.tensor == 1)) return;
      Config c = wide(GetParam(), grid, schedule);
      c.train.precision = precision;
      c.train.zero = zero;
      c.train.sequence_parallel = sequence_parallel;
      c.train.recompute = recomputed ? RecomputeKind::block : RecomputeKind::none;
      compare(c);
      ++cases;
    };
    try_one(Precision::f32, 0, false);
    try_one(Precision::bf16, 1, false);
    try_one(Precision::f32, 2, false);
    try_one(Precision::bf16, 0, true);
    try_one(Precision::f32, 1, true);
    try_one(Precision::bf16, 2, true, true);
    try_one(Precision::f32, 0, false, true);
    try_one(Precision::bf16, 0, false, false, ScheduleKind::zero_bubble);
    try_one(Precision::f32, 1, false, false, ScheduleKind::interleaved);
    if (grid.data == 1) {
      try_one(Precision::bf16, 0, true, true);
      try_one(Precision::f32, 0, true, false, ScheduleKind::interleaved);
    }
  }
  if (all_ranks().rank == 0) std::printf("%d steps counted\n", cases);
}

INSTANTIATE_TEST_SUITE_P(Of, Ledger,
                         ::testing::Values(Style::gpt2, Style::llama, Style::transformer, Style::bert,
                                           Style::post_norm, Style::vit, Style::evolved, Style::wide_resnet,
                                           Style::subnet),
                         [](const auto& info) { return name_of(info.param); });

/// Three shards on a rank are two roots.
TEST(LedgerOfSeveralRoots, CountsEachOfThem) {
  for (const GridConfig& grid : grids_to_count(all_ranks().size)) {
    if (grid.tensor > 2) continue;  // and data 4 of 12
    for (int zero : {0, 2}) {
      const Style style = zero == 0 ? Style::transformer : Style::gpt2;
      Config c = wide(style, grid, ScheduleKind::one_forward_one_backward, 3);
      c.train.precision = zero == 0 ? Precision::f32 : Precision::bf16;
      c.train.zero = grid.data > 1 ? zero : 0;
      c.train.sequence_parallel = zero > 0;
      compare(c);
    }
  }
}

/// What crosses differs from cut to cut: rows of a source or a target, a memory or none.
TEST(LedgerOfCuts, IsExactWhereverACutIs) {
  const int ranks = all_ranks().size;
  if (ranks > 4) GTEST_SKIP() << "two stages";
  for (Style style : {Style::transformer, Style::bert, Style::post_norm, Style::vit, Style::evolved,
                      Style::wide_resnet, Style::subnet}) {
    Config c = wide(style, {1, 2, 1, ranks / 2});
    c.train.precision = ranks == 2 ? Precision::f32 : Precision::bf16;
    c.train.sequence_parallel = ranks > 2;
    for (int cut = 1; cut <= Sizes(c).last(); ++cut) {
      c.schedule.cuts = {cut};
      compare(c);
    }
  }
}

TEST(LedgerOfParts, IsExactToo) {
  const int ranks = all_ranks().size;
  for (int zero : {0, 1, 2}) {
    Config c = wide(Style::gpt2, {1, ranks / 2, 2, 1});
    text_model(c).vocabulary = 40064;
    c.train.zero = zero;
    int parts = 0;
    for (const auto& list : make_run_plan(resolve(c)).training.program.ranks)
      for (const Action& action : list) parts = std::max(parts, action.parts);
    EXPECT_EQ(parts, 6) << "a table of 20 MB";
    compare(c);
  }
}

}  // namespace
}  // namespace mindpipe
