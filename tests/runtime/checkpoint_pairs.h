#pragma once
#include "runtime/checkpoints.h"

namespace mindpipe {

/// How a run is laid out: what may change from one start to the next.
struct RunLayout {
  GridConfig grid;
  ScheduleKind schedule = ScheduleKind::one_forward_one_backward;
  int zero = 0;
  bool sequence_parallel = false, recomputed = false;
};

/// A run that is saved on one layout and goes on on another.
struct LayoutPair {
  Style style = Style::gpt2;
  Precision precision = Precision::f32;
  OptimizerKind optimizer = OptimizerKind::adamw;
  int tensor = 1, data = 1;  ///< logical shards
  RunLayout before, after;
  CheckpointWriterKind writer = CheckpointWriterKind::direct;
  Background background = Background::automatic;
};

inline Config config_of(const LayoutPair& pair, const RunLayout& layout) {
  const int stages = layout.grid.pipeline,
            chunks = row_of(layout.schedule).has_chunks ? 2 : row_of(layout.schedule).chunks(),
            most = std::max(pair.before.grid.pipeline, pair.after.grid.pipeline);
  Config c = tiny(pair.style, pair.tensor, pair.data, 1, std::max(8, 2 * most));
  c.grid = layout.grid;
  c.schedule.kind = stages == 1 ? ScheduleKind::one_forward_one_backward : layout.schedule;
  c.schedule.chunks = stages == 1 ? 1 : chunks;
  c.train.precision = pair.precision;
  c.train.zero = layout.zero;
  c.train.sequence_parallel = layout.sequence_parallel;
  c.train.recompute = layout.recomputed ? WhichBlocks::block : WhichBlocks::none;
  c.memory.optimizer = layout.zero == 1 ? StatePlace::host : StatePlace::device;
  c.optimizer.kind = pair.optimizer;
  c.optimizer.momentum = 0.9;
  c.checkpoint.every = 1;
  c.checkpoint.writer = pair.writer;
  c.checkpoint.background = pair.background;
  return resolve(c);
}

inline int ranks_of(const RunLayout& layout) {
  return layout.grid.pipeline * layout.grid.data * layout.grid.tensor;
}

inline std::string describe(const LayoutPair& pair) {
  return fmt::format("from {} by {}{} to {}", describe(config_of(pair, pair.before)), pair.writer,
                     pair.background == Background::no ? " in the foreground" : "",
                     describe(config_of(pair, pair.after)));
}

/// Whether both grids can share the logical shards.
inline bool is_possible(const LayoutPair& pair) {
  return std::all_of(&pair.before, &pair.after + 1, [&](const RunLayout& layout) {
    return pair.tensor % layout.grid.tensor == 0 && pair.data % layout.grid.data == 0;
  });
}

/// Each of pipeline, data and tensor grows and shrinks, each ZeRO stands on either side.
inline std::vector<LayoutPair> chosen_pairs() {
  using enum Style;
  using enum Precision;
  using enum OptimizerKind;
  constexpr auto plain = ScheduleKind::one_forward_one_backward, folded = ScheduleKind::interleaved;
  constexpr auto direct = CheckpointWriterKind::direct, mpiio = CheckpointWriterKind::mpiio;
  constexpr auto waits = Background::no;
  return {
      {gpt2, f32, adamw, 2, 2, {{1, 1, 1, 1}}, {{1, 2, 2, 2}, folded, 2}},
      {gpt2, bf16, adamw, 2, 2, {{1, 2, 2, 2}, plain, 2}, {{1, 1, 1, 1}}, mpiio},
      {llama, f32, adamw, 4, 4, {{1, 1, 4, 1}, plain, 1}, {{1, 1, 2, 2}, plain, 2}},
      {bert, bf16, sgd, 1, 2, {{1, 4, 1, 1}, folded}, {{1, 1, 2, 1}, plain, 1}, direct, waits},
      {transformer, f32, adamw, 1, 2, {{1, 2, 1, 1}, folded, 1}, {{1, 4, 2, 1}, plain, 0}},
      {vit, bf16, sgd, 4, 1, {{1, 1, 1, 4}}, {{1, 2, 1, 1}, folded}},
      {wide_resnet, bf16, adamw, 2, 2, {{1, 2, 2, 1}, folded, 2}, {{1, 1, 1, 2}, plain, 0, true}},
      {post_norm, f32, adamw, 3, 3, {{1, 1, 3, 1}, plain, 2}, {{1, 1, 1, 3}}, mpiio},
      {post_norm, bf16, adamw, 1, 8, {{1, 8, 1, 1}}, {{1, 1, 8, 1}, plain, 1}},
      {llama, bf16, adamw, 4, 8, {{1, 1, 8, 1}, plain, 2}, {{1, 2, 1, 4}, plain, 0, true}, direct, waits},
      {transformer, bf16, adamw, 4, 2, {{1, 1, 2, 4}, plain, 1, true}, {{1, 3, 1, 1}}},
      {bert, f32, sgd, 2, 4, {{1, 2, 4, 1}, folded, 2}, {{1, 1, 4, 2}, plain, 2}},
      {gpt2, f32, adamw, 6, 6, {{1, 1, 6, 1}, plain, 1}, {{1, 5, 1, 1}, plain, 0, false, true}},
      {gpt2, f32, adamw, 1, 12, {{1, 1, 1, 1}}, {{1, 2, 3, 1}, plain, 2}},
      {gpt2, bf16, adamw, 2, 6, {{1, 1, 2, 2}, plain, 1}, {{1, 1, 6, 1}, plain, 2}},
  };
}

/// Pairs drawn by lot, of grids of up to `most` ranks.
inline std::vector<LayoutPair> random_pairs(int count, int most) {
  const RandomStream lots{17, purpose_of("pairs of layouts")};
  std::uint64_t draws = 0;
  const auto below = [&](std::size_t bound) { return static_cast<int>(lots.word(draws++) % bound); };
  constexpr std::array shards{1, 2, 3, 4, 6, 8, 12};
  const auto layout = [&] {
    const std::vector<GridConfig> grids = grids_of(1 + below(static_cast<std::size_t>(most)));
    RunLayout made;
    if (!grids.empty()) made.grid = grids[below(grids.size())];
    made.schedule = schedules[below(schedules.size())];
    made.zero = below(3);
    made.sequence_parallel = below(2) == 1;
    made.recomputed = below(2) == 1;
    return made;
  };
  std::vector<LayoutPair> pairs;
  while (static_cast<int>(pairs.size()) < count) {
    LayoutPair pair{static_cast<Style>(below(style_count)),
                    below(2) == 0 ? Precision::f32 : Precision::bf16,
                    below(3) == 0 ? OptimizerKind::sgd : OptimizerKind::adamw,
                    shards[below(6)],
                    shards[below(7)],
                    layout(),
                    layout(),
                    below(4) == 0 ? CheckpointWriterKind::mpiio : CheckpointWriterKind::direct,
                    below(3) == 0 ? Background::no : Background::automatic};
    if (is_possible(pair)) pairs.push_back(pair);
  }
  return pairs;
}

}  // namespace mindpipe
