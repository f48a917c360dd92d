#pragma once
#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "comm/ledger.h"
#include "core/sum_tree.h"
#include "runtime/sizes.h"

namespace mindpipe {

struct Volume {
  std::int64_t bytes = 0;
  /// Whether `bytes` are of all ranks that differ in the data coordinate only: pieces are cut at edges of
  /// chunks of statistics, so that the ranks' own shares follow from no formula.
  bool of_replicas = false;
  bool operator==(const Volume&) const = default;
};
using TrafficLines = std::map<std::pair<Axis, TrafficClass>, Volume>;

/// What rank `rank` of `ranks` sends when they sum `n` numbers, doubles if nothing else is said, in parts as
/// equal as they can be: the others' parts of each of its roots, and its own to all.
inline std::int64_t bytes_of_scalars(std::int64_t n, std::int64_t ranks, std::int64_t rank,
                                     std::int64_t roots = 1, std::int64_t bytes = 8) {
  if (ranks == 1) return 0;
  const std::int64_t own = n * (rank + 1) / ranks - n * rank / ranks;
  return bytes * (roots * (n - own) + (ranks - 1) * own);
}

/// The pipeline rank that runs a block. `c` names its cuts.
inline std::int64_t stage_of(const Config& c, int block) {
  return (std::upper_bound(c.schedule.cuts.begin(), c.schedule.cuts.end(), block) - c.schedule.cuts.begin()) %
         c.grid.pipeline;
}

/// What one rank holds of a model.
struct Holding {
  std::int64_t reduced = 0, gathered = 0;  ///< elements of gradients summed, of values gathered, over data
  std::int64_t squares = 0;                ///< chunks of statistics
  std::int64_t whole = 0;                  ///< elements that every tensor rank holds for its rows
  std::int64_t tied = 0;                   ///< elements of a tied table's gradients for other stages
  std::int64_t halves = 0;    ///< rows of a sample in gathers and scatters of activations, replayed ones too
  std::int64_t scatters = 0;  ///< rows in scatters alone
};
inline Holding held_by(const Config& c, const Coord& here, const Sizes& sizes) {
  const std::int64_t t = c.grid.tensor, shards = c.reproducible.tensor;
  const auto chunks = [](std::int64_t elements) {
    return (elements + statistics_chunk - 1) / statistics_chunk;
  };
  Holding held;
  for (int i = 0; i <= sizes.last(); ++i) {
    if (stage_of(c, i) != here.pipeline) continue;
    const Sizes::Block& block = sizes.blocks[i];
    const bool recomputed = c.train.recompute.has(i);
    held.halves += block.halves + (recomputed ? block.replayed : 0);
    held.scatters += block.scatters + (recomputed ? block.replayed_scatters : 0);
    for (std::int64_t n : block.cut) {
      held.reduced += n / t;
      held.gathered += n / t;
      held.squares += shards / t * chunks(n / shards);
    }
    for (const auto* tensors : {&block.whole, &block.alike})
      for (std::int64_t n : *tensors) {
        held.whole += tensors == &block.whole ? n : 0;
        held.reduced += n;
        held.gathered += n;
        held.squares += chunks(n);
      }
  }
  for (const Sizes::Table& table : sizes.tables) {
    std::set<std::int64_t> homes;
    for (int block : table.blocks) homes.insert(stage_of(c, block));
    const std::int64_t uses = std::count_if(table.blocks.begin(), table.blocks.end(),
                                            [&](int b) { return stage_of(c, b) == here.pipeline; });
    if (uses == 0) continue;
    held.reduced += uses * table.elements / t;
    held.gathered += table.elements / t;
    held.squares += shards / t * chunks(table.elements / shards);
    held.tied += uses * (static_cast<std::int64_t>(homes.size()) - 1) * table.elements / t;
  }
  return held;
}

/// Bytes that the rank at `here` sends over the cuts beside it for each number of a sample's row: an
/// activation forth and its gradient back, and an encoder's memory, whose gradient is f32 on the wire too.
inline std::int64_t crossing_the_cuts(const Config& c, const Coord& here, const Sizes& sizes) {
  const std::int64_t element = c.train.precision == Precision::bf16 ? 2 : 4, f32 = 4;
  std::int64_t crossing = 0;
  for (int cut : c.schedule.cuts) {
    const std::int64_t from = stage_of(c, cut - 1), to = stage_of(c, cut);
    if (from == to) continue;
    const std::int64_t rows = sizes.rows_before(cut), memory = sizes.memory_before(cut);
    if (from == here.pipeline) crossing += element * (rows + memory);
    if (to == here.pipeline) crossing += element * rows + f32 * memory;
  }
  return crossing;
}

/// Bytes that the rank at `here` sends in a step, by the formulas. `c` names its cuts; ranks have as many
/// roots of the logical shards as their neighbours.
inline TrafficLines expected_traffic(const Config& c, const Coord& here) {
  const Sizes sizes(c);
  const Holding held = held_by(c, here, sizes);
  const std::int64_t p = c.grid.pipeline, d = c.grid.data, t = c.grid.tensor;
  const std::int64_t e = c.train.precision == Precision::bf16 ? 2 : 4, zero = c.train.zero, f32 = 4;
  const std::int64_t targets = c.train.micro_batch * sizes.targets(),
                     row = c.train.micro_batch * sizes.width(),
                     micro_batches = c.train.batch / c.train.micro_batch / d;
  const bool sequence = c.train.sequence_parallel;
  const std::int64_t roots = SumTree(c.reproducible.data, c.grid.data).most_roots(),
                     tensor_roots = SumTree(c.reproducible.tensor, c.grid.tensor).most_roots();

  TrafficLines lines;
  // A gather sends each rank's part to t - 1 others, as a scatter does; the softmax adds a maximum and three
  // sums of every target, f32.
  const bool has_head = stage_of(c, sizes.last()) == here.pipeline;
  std::int64_t& sums = lines[{Axis::tensor, TrafficClass::tensor}].bytes;
  sums = micro_batches * (t - 1) * held.halves * e * row / t;
  sums += (tensor_roots - 1) * micro_batches * (t - 1) * held.scatters * e * row / t;
  if (has_head)
    sums += micro_batches * (bytes_of_scalars(targets, t, here.tensor, 1, f32) +
                             bytes_of_scalars(3 * targets, t, here.tensor, tensor_roots, f32));
  // Where the sequence is cut, what sees rows only is summed once for each logical data shard.
  if (sequence) sums += c.reproducible.data / d * (1 + tensor_roots) * (t - 1) * f32 * held.whole / t;
  lines[{Axis::pipeline, TrafficClass::pipeline}] = {micro_batches * crossing_the_cuts(c, here, sizes) * row /
                                                     (sequence ? t : 1)};
  lines[{Axis::pipeline, TrafficClass::gradients}] = {f32 * held.tied, zero > 0};
  // Of two replicas that keep nothing apart each sends as much as the other, however the pieces are cut.
  const bool alike = zero == 0 && d <= 2 && roots == 1;
  lines[{Axis::data, TrafficClass::gradients}] = {
      (roots + (zero > 0 ? 0 : 1)) * (d - 1) * f32 * held.reduced / (alike ? d : 1), !alike};
  lines[{Axis::data, TrafficClass::values}] = {zero > 0 ? (d - 1) * e * held.gathered : 0, true};
  // Loss and valid tokens; where gradients are cut among the replicas, the squares of all chunks of
  // statistics.
  lines[{Axis::data, TrafficClass::scalars}] = {
      bytes_of_scalars(1, d, here.data, roots) + bytes_of_scalars(1, d, here.data) +
      (zero > 0 ? bytes_of_scalars(held.squares, d, here.data) : 0)};
  lines[{Axis::tensor, TrafficClass::scalars}] = {
      bytes_of_scalars(sizes.tensors(), t, here.tensor, tensor_roots)};
  lines[{Axis::pipeline, TrafficClass::scalars}] = {bytes_of_scalars(1 + sizes.tensors(), p, here.pipeline)};
  return lines;
}

}  // namespace mindpipe
