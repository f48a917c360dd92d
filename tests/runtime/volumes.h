#pragma once
#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "comm/ledger.h"
#include "runtime/parity.h"

namespace mindpipe {

/// A model as one would write its sizes down: elements of each tensor, and what one micro-batch sends. Extents are multiples of 64 in every
/// logical shard, so nothing is padded but the vocabulary.
class Sizes {
 public:
  struct Table {
    std::int64_t elements;
    std::vector<int> blocks;  ///< that use it
  };
  std::vector<std::int64_t> cut, whole;   ///< tensors cut into logical tensor shards; tensors that every tensor rank holds
  std::vector<Table> tables;              ///< cut by vocabulary
  std::int64_t halves = 0, replayed = 0;  ///< gathers and scatters of an activation (a sum is one of each); again when recomputed
  int blocks = 0, first_reader = 0, last_reader = -1;  ///< of an encoder's memory, in the order of the model's list

  explicit Sizes(const Config& c)
      : bias_(c.model.bias), sequence_parallel_(c.train.sequence_parallel), h_(c.model.width), layers_(c.model.layers) {
    const ModelConfig& m = c.model;
    const std::int64_t unit = 64 * c.reproducible.tensor, rows = (m.vocabulary + unit - 1) / unit * unit, table = rows * h_;
    heads_ = m.width / m.heads, inner_ = m.mlp_width, inner_rows_ = (m.mlp == "swiglu" ? 2 : 1) * inner_;
    if (m.kind == "translator") {
      translator(m.context);
      tables = {{table, {0, 2 * layers_ + 1, blocks - 1}}};
      return;
    }
    if (m.positions == "learned") whole.push_back(m.context * h_);
    for (int i = 0; i < layers_; ++i) attention(heads_ * m.key_value_heads), mlp();
    norm();
    blocks = 2 * layers_ + 2, halves = 2 * (4 * layers_ + 2), replayed = 2 * 2 * layers_;
    if (m.tied) tables = {{table, {0, blocks - 1}}};
    else tables = {{table, {0}}, {table, {blocks - 1}}};
  }

  /// All tensors: a table counts once.
  std::int64_t tensors() const { return static_cast<std::int64_t>(cut.size() + whole.size() + tables.size()); }

 private:
  void norm() {
    whole.push_back(h_);
    if (bias_) whole.push_back(h_);
  }
  void product(std::int64_t rows) {
    cut.push_back(rows * h_);
    if (bias_) cut.push_back(rows);
  }
  void closing_product(std::int64_t columns) {
    cut.push_back(h_ * columns);
    if (bias_) whole.push_back(h_);
  }
  void attention(std::int64_t key_width) { norm(), product(h_ + 2 * key_width), closing_product(h_); }
  void cross_attention() { norm(), product(h_), product(2 * h_), closing_product(h_); }
  void mlp() { norm(), product(inner_rows_), closing_product(inner_); }

  /// Embedding, (attention, MLP) x layers, bridge, (attention, cross attention, MLP) x layers, head.
  void translator(std::int64_t context) {
    whole = {context * h_, context * h_};
    for (int i = 0; i < layers_; ++i) attention(h_), mlp(), attention(h_), cross_attention(), mlp();
    norm(), norm();
    blocks = 5 * layers_ + 3, first_reader = 2 * layers_ + 2, last_reader = blocks - 3;
    // Cross attention sums its output, the gradient of its queries and that of the memory; where the sequence is cut, its forward gathers
    // two inputs and its backward but one.
    halves = 2 * (4 * layers_ + 7 * layers_ + 3);
    replayed = 2 * 4 * layers_ + (sequence_parallel_ ? 3 : 2) * layers_;
  }

  bool bias_, sequence_parallel_;
  std::int64_t h_, heads_ = 0, inner_ = 0, inner_rows_ = 0;
  int layers_;
};

using TrafficLines = std::map<std::pair<Axis, TrafficClass>, std::int64_t>;

/// Bytes that all ranks together send in a step, by the formulas. `c` names its cuts.
inline TrafficLines expected_traffic(const Config& c) {
  const Sizes sizes(c);
  const std::int64_t p = c.grid.pipeline, d = c.grid.data, t = c.grid.tensor, shards = c.reproducible.tensor;
  const std::int64_t h = c.model.width, e = c.train.precision == "bf16" ? 2 : 4, zero = c.train.zero, f32 = 4, f64 = 8;
  const std::int64_t tokens = c.train.micro_batch * c.data.sequence, activation = tokens * h,
                     micro_batches = c.train.batch / c.train.micro_batch;
  const auto rank_of = [&](int block) {
    return (std::upper_bound(c.schedule.cuts.begin(), c.schedule.cuts.end(), block) - c.schedule.cuts.begin()) % p;
  };
  const auto chunks = [&](std::int64_t elements, std::int64_t parts) {
    return parts * ((elements / parts + statistics_chunk - 1) / statistics_chunk);
  };

  // What travels over data once for each use of a table, each rank that holds it, and each tensor rank that holds it whole.
  std::int64_t reduced = 0, gathered = 0, squares = 0, tied = 0, whole = 0;
  for (std::int64_t n : sizes.cut) reduced += n, gathered += n, squares += chunks(n, shards);
  for (std::int64_t n : sizes.whole) whole += n, reduced += t * n, gathered += t * n, squares += t * chunks(n, 1);
  for (const Sizes::Table& table : sizes.tables) {
    std::set<std::int64_t> homes;
    for (int block : table.blocks) homes.insert(rank_of(block));
    const auto uses = static_cast<std::int64_t>(table.blocks.size()), held = static_cast<std::int64_t>(homes.size());
    reduced += uses * table.elements, gathered += held * table.elements, squares += held * chunks(table.elements, shards);
    tied += uses * (held - 1) * table.elements;
  }

  TrafficLines lines;
  const bool sequence = c.train.sequence_parallel, recomputed = c.train.recompute == "block";
  // A gather sends each rank's part to t - 1 others, as a scatter does; the softmax adds a maximum and three sums of every token, f32.
  std::int64_t& sums = lines[{Axis::tensor, TrafficClass::tensor}];
  sums = micro_batches * (t - 1) * ((sizes.halves + (recomputed ? sizes.replayed : 0)) * e * activation + 2 * 4 * f32 * tokens);
  // Where the sequence is cut, what sees rows only is summed once for each logical data shard.
  if (sequence) sums += c.reproducible.data * 2 * (t - 1) * f32 * whole;
  std::int64_t crossing = 0;  // an activation forth and its gradient back, and a memory whose gradient is f32 on the wire too
  for (int cut : c.schedule.cuts) {
    if (rank_of(cut - 1) == rank_of(cut)) continue;
    crossing += 2 * e * activation + (cut >= sizes.first_reader && cut <= sizes.last_reader ? (e + f32) * activation : 0);
  }
  lines[{Axis::pipeline, TrafficClass::pipeline}] = micro_batches * crossing * (sequence ? 1 : t);
  lines[{Axis::pipeline, TrafficClass::gradients}] = f32 * tied * (zero > 0 ? 1 : d);
  lines[{Axis::data, TrafficClass::gradients}] = (zero > 0 ? 1 : 2) * (d - 1) * f32 * reduced;
  lines[{Axis::data, TrafficClass::values}] = zero > 0 ? (d - 1) * e * gathered : 0;
  // Loss and valid tokens; where gradients are cut among the replicas, the squares of all chunks of statistics.
  lines[{Axis::data, TrafficClass::scalars}] = 2 * (d - 1) * f64 * (p * t * 2 + (zero > 0 ? squares : 0));
  lines[{Axis::tensor, TrafficClass::scalars}] = p * d * 2 * (t - 1) * f64 * sizes.tensors();
  lines[{Axis::pipeline, TrafficClass::scalars}] = d * t * 2 * (p - 1) * f64 * (1 + sizes.tensors());
  return lines;
}

}  // namespace mindpipe
