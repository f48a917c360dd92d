#pragma once
#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "comm/ledger.h"
#include "core/sum_tree.h"
#include "runtime/parity.h"

namespace mindpipe {

/// A model as one would write its sizes down: elements of each tensor, and what one micro-batch sends.
/// Extents are multiples of 64 in every logical shard, so nothing is padded but the vocabulary.
class Sizes {
 public:
  struct Table {
    std::int64_t elements;
    std::vector<int> blocks;  ///< that use it
  };
  struct Block {
    std::vector<std::int64_t> cut,
        whole;  ///< tensors cut into logical tensor shards; tensors that every tensor rank holds
    /// Rows of a sample in gathers and scatters of activations (a sum is one of each), in the scatters alone,
    /// and in both again when recomputed.
    std::int64_t halves = 0, scatters = 0, replayed = 0, replayed_scatters = 0;
  };
  std::vector<Block> blocks;
  std::vector<Table> tables;               ///< cut by vocabulary
  int first_reader = 0, last_reader = -1;  ///< blocks that read an encoder's memory

  explicit Sizes(const Config& c)
      : bias_(text_model(c).bias),
        sequence_parallel_(c.train.sequence_parallel),
        h_(text_model(c).width),
        rows_(rows_of(c)),
        layers_(text_model(c).layers) {
    const TextSettings& m = text_model(c);
    const std::int64_t unit = 64 * c.reproducible.tensor, rows = (m.vocabulary + unit - 1) / unit * unit,
                       table = rows * h_;
    heads_ = m.width / m.heads;
    inner_ = m.mlp_width;
    inner_rows_ = (m.mlp == MlpKind::swiglu ? 2 : 1) * inner_;
    if (c.model.kind == ModelKind::transformer) {
      transformer(m.context, c.data.source_sequence > 0 ? c.data.source_sequence : rows_);
      tables = {{table, {0, 2 * layers_ + 1, last()}}};
      return;
    }
    end(c.model.gpt.positions == Positions::learned ? m.context : 0, false);
    for (int i = 0; i < layers_; ++i) {
      attention(heads_ * c.model.gpt.key_value_heads);
      mlp();
    }
    end(0, true);
    if (c.model.gpt.tied) tables = {{table, {0, last()}}};
    else tables = {{table, {0}}, {table, {last()}}};
  }

  /// Rows of a sample of what crosses the cut before a block: an activation, an encoder's output.
  std::int64_t rows_before(int block) const { return block <= bridge_ ? source_rows_ : rows_; }
  std::int64_t memory_before(int block) const {
    return block >= first_reader && block <= last_reader ? source_rows_ : 0;
  }
  int last() const { return static_cast<int>(blocks.size()) - 1; }
  /// All tensors: a table counts once.
  std::int64_t tensors() const {
    std::size_t count = tables.size();
    for (const Block& block : blocks) count += block.cut.size() + block.whole.size();
    return static_cast<std::int64_t>(count);
  }

 private:
  void norm() {
    blocks.back().whole.push_back(h_);
    if (bias_) blocks.back().whole.push_back(h_);
  }
  void product(std::int64_t rows) {
    blocks.back().cut.push_back(rows * h_);
    if (bias_) blocks.back().cut.push_back(rows);
  }
  void closing_product(std::int64_t columns) {
    blocks.back().cut.push_back(h_ * columns);
    if (bias_) blocks.back().whole.push_back(h_);
  }
  /// A use of a table: its rows, or the gradient of what is multiplied with them, are summed once.
  void end(std::int64_t positions, bool normed) {
    blocks.push_back({{}, {}, 2 * rows_, rows_, 0, 0});
    if (normed) norm();
    if (positions > 0) blocks.back().whole.push_back(positions * h_);
  }
  void branch() {
    blocks.push_back({{}, {}, 4 * rows_, 2 * rows_, 2 * rows_, rows_});
    norm();
  }
  void attention(std::int64_t key_width) {
    branch();
    product(h_ + 2 * key_width);
    closing_product(h_);
  }
  /// Sums its output, the gradient of its queries and that of the memory; where the sequence is cut, its
  /// forward gathers two inputs and its backward but one.
  void cross_attention() {
    blocks.push_back({{},
                      {},
                      4 * rows_ + 2 * source_rows_,
                      2 * rows_ + source_rows_,
                      2 * rows_ + (sequence_parallel_ ? source_rows_ : 0),
                      rows_});
    norm();
    product(h_);
    product(2 * h_);
    closing_product(h_);
  }
  void mlp() {
    branch();
    product(inner_rows_);
    closing_product(inner_);
  }

  /// Embedding, (attention, MLP) x layers, bridge, (attention, cross attention, MLP) x layers, head.
  void transformer(std::int64_t context, std::int64_t source_rows) {
    const std::int64_t target_rows = rows_;
    source_rows_ = rows_ = source_rows;
    end(context, false);
    for (int i = 0; i < layers_; ++i) {
      attention(h_);
      mlp();
    }
    rows_ = target_rows;
    bridge_ = last() + 1;
    end(context, true);
    for (int i = 0; i < layers_; ++i) {
      attention(h_);
      cross_attention();
      mlp();
    }
    end(0, true);
    first_reader = 2 * layers_ + 2;
    last_reader = last() - 2;
  }

  bool bias_, sequence_parallel_;
  std::int64_t h_, heads_ = 0, inner_ = 0, inner_rows_ = 0;
  std::int64_t rows_, source_rows_ = 0;  ///< of a sample
  int layers_, bridge_ = -1;
};

struct Volume {
  std::int64_t bytes = 0;
  /// Whether `bytes` are of all ranks that differ in the data coordinate only: pieces are cut at edges of
  /// chunks of statistics, so that the ranks' own shares follow from no formula.
  bool of_replicas = false;
  bool operator==(const Volume&) const = default;
};
using TrafficLines = std::map<std::pair<Axis, TrafficClass>, Volume>;

/// What rank `rank` of `ranks` sends when they sum `n` doubles in parts as equal as they can be: the others'
/// parts of each of its roots, and its own to all.
inline std::int64_t bytes_of_scalars(std::int64_t n, std::int64_t ranks, std::int64_t rank,
                                     std::int64_t roots = 1) {
  if (ranks == 1) return 0;
  const std::int64_t own = n * (rank + 1) / ranks - n * rank / ranks;
  return 8 * (roots * (n - own) + (ranks - 1) * own);
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
  std::int64_t whole = 0;                  ///< elements that every tensor rank holds
  std::int64_t tied = 0;                   ///< elements of a tied table's gradients for other stages
  std::int64_t halves = 0;    ///< rows of a sample in gathers and scatters of activations, replayed ones too
  std::int64_t scatters = 0;  ///< rows in scatters alone
};
inline Holding held_by(const Config& c, const Coord& here, const Sizes& sizes) {
  const std::int64_t t = c.grid.tensor, shards = c.reproducible.tensor;
  const bool recomputed = c.train.recompute == RecomputeKind::block;
  const auto chunks = [](std::int64_t elements) {
    return (elements + statistics_chunk - 1) / statistics_chunk;
  };
  Holding held;
  for (int i = 0; i <= sizes.last(); ++i) {
    if (stage_of(c, i) != here.pipeline) continue;
    const Sizes::Block& block = sizes.blocks[i];
    held.halves += block.halves + (recomputed ? block.replayed : 0);
    held.scatters += block.scatters + (recomputed ? block.replayed_scatters : 0);
    for (std::int64_t n : block.cut) {
      held.reduced += n / t;
      held.gathered += n / t;
      held.squares += shards / t * chunks(n / shards);
    }
    for (std::int64_t n : block.whole) {
      held.whole += n;
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
  const std::int64_t tokens = c.train.micro_batch * rows_of(c),
                     row = c.train.micro_batch * text_model(c).width,
                     micro_batches = c.train.batch / c.train.micro_batch / d;
  const bool sequence = c.train.sequence_parallel;
  const std::int64_t roots = SumTree(c.reproducible.data, c.grid.data).most_roots(),
                     tensor_roots = SumTree(c.reproducible.tensor, c.grid.tensor).most_roots();

  TrafficLines lines;
  // A gather sends each rank's part to t - 1 others, as a scatter does; the softmax adds a maximum and three
  // sums of every token, f32.
  const std::int64_t has_head = stage_of(c, sizes.last()) == here.pipeline ? 1 : 0,
                     softmax = 2 * 4 * has_head * f32 * tokens, more_softmax = 3 * has_head * f32 * tokens;
  std::int64_t& sums = lines[{Axis::tensor, TrafficClass::tensor}].bytes;
  sums = micro_batches * (t - 1) * (held.halves * e * row + softmax) / t;
  sums += (tensor_roots - 1) * micro_batches * (t - 1) * (held.scatters * e * row + more_softmax) / t;
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
