// ranks: 2, thorough ranks: 4 8
#include <gtest/gtest.h>
#include <mpi.h>

#include "runtime/parity_cases.h"
#include "runtime/ranks.h"
#include "runtime/traffic.h"
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
  c.schedule.chunks = row_of(schedule).has_chunks ? 2 : row_of(schedule).chunks();
  if (style != Style::wide_resnet) widen(c, style);
  const int blocks = Sizes(c).last() + 1, chunks = grid.pipeline * c.schedule.chunks;
  for (int i = 1; i < chunks; ++i) c.schedule.cuts.push_back(i * blocks / chunks);
  return c;
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
  compare_sums(worker);
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
  compare_reduces(worker);
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
  // On many ranks a manner goes round with the grids and styles: every pair of the three occurs. What follows
  // from no formula but from the plan alone is counted in every layout of the parity tests.
  std::map<int, int> turns;
  for (const GridConfig& grid : grids_to_count(all_ranks().size)) {
    int manner = 0;
    const auto try_one = [&](Precision precision, int zero, bool sequence_parallel, bool recomputed = false,
                             ScheduleKind schedule = ScheduleKind::one_forward_one_backward) {
      ++manner;
      if ((zero > 0 && grid.data == 1) || (sequence_parallel && grid.tensor == 1)) return;
      const int turn = turns[manner]++;
      if (all_ranks().size > 2 && turn > 0 && (turn + static_cast<int>(GetParam())) % 3 != 0) return;
      Config c = wide(GetParam(), grid, schedule);
      c.train.precision = precision;
      c.train.zero = zero;
      c.train.sequence_parallel = sequence_parallel;
      c.train.recompute = recomputed ? WhichBlocks::block : WhichBlocks::none;
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
    EXPECT_EQ(parts, 9) << "a table of 20 MB in parts of 250 us";
    compare(c);
  }
}

}  // namespace
}  // namespace mindpipe
