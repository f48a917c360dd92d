#pragma once
#include <vector>

#include "models/model.h"
#include "runtime/parity.h"

namespace mindpipe {

/// A model as one would write its sizes down: elements of each tensor, and what one micro-batch sends.
/// Extents are multiples of 64 in every logical shard, so nothing is padded but the vocabulary. Where
/// pictures shrink, "rows" are single numbers and tensors are counted with what fills their last 256 bytes.
class Sizes {
 public:
  struct Table {
    std::int64_t elements;
    std::vector<int> blocks;  ///< blocks that use the table
  };
  struct Block {
    std::vector<std::int64_t> cut,  ///< tensors cut into logical tensor shards
        whole,  ///< tensors that every tensor rank holds, and whose gradient is of its rows
        alike;  ///< such tensors whose gradient every tensor rank computes alike
    /// Rows of a sample in gathers and scatters of activations (a sum is one of each), in the scatters alone,
    /// and in both again when recomputed.
    std::int64_t halves = 0, scatters = 0, replayed = 0, replayed_scatters = 0;
    std::int64_t entering = 0;  ///< rows of a sample before it, where each block has others
  };
  std::vector<Block> blocks;
  std::vector<Table> tables;               ///< cut by vocabulary
  int first_reader = 0, last_reader = -1;  ///< blocks that read an encoder's memory

  explicit Sizes(const Config& c)
      : shards_(c.reproducible.tensor), sequence_parallel_(c.train.sequence_parallel) {
    if (c.model.kind == ModelKind::wide_resnet) {
      wide_resnet(c);
      return;
    }
    const BlockSettings& m = block_model(c);
    bias_ = m.bias;
    h_ = m.width;
    inner_ = m.mlp_width;
    inner_rows_ = (m.mlp == MlpKind::swiglu ? 2 : 1) * inner_;
    switch (c.model.kind) {
      case ModelKind::gpt:
        gpt(c);
        break;
      case ModelKind::bert:
        bert(c);
        break;
      case ModelKind::transformer:
        transformer(c);
        break;
      case ModelKind::vit:
        vit(c);
        break;
      case ModelKind::evolved_transformer:
        evolved(c);
        break;
      case ModelKind::subnet:
        subnet(c);
        break;
      case ModelKind::wide_resnet:
      case ModelKind::supernet:
        break;
    }
  }

  /// Targets of a sample.
  std::int64_t targets() const { return targets_; }
  /// Numbers of a row.
  std::int64_t width() const { return h_; }
  /// Rows of a sample of what crosses the cut before a block: an activation, an encoder's output.
  std::int64_t rows_before(int block) const {
    if (blocks[block].entering > 0) return blocks[block].entering;
    return block <= bridge_ ? source_rows_ : rows_;
  }
  std::int64_t memory_before(int block) const {
    return block >= first_reader && block <= last_reader ? source_rows_ : 0;
  }
  int last() const { return static_cast<int>(blocks.size()) - 1; }
  /// All tensors: a table counts once.
  std::int64_t tensors() const {
    std::size_t count = tables.size();
    for (const Block& block : blocks) count += block.cut.size() + block.whole.size() + block.alike.size();
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
  std::int64_t padded(std::int64_t vocabulary) const {
    const std::int64_t unit = 64 * shards_;
    return (vocabulary + unit - 1) / unit * unit;
  }
  void table(std::int64_t vocabulary, const std::vector<int>& users) {
    tables.push_back({padded(vocabulary) * h_, users});
  }
  /// A use of a table: its rows, or the gradient of what is multiplied with them, are summed once.
  void end(std::int64_t positions, bool normed) {
    blocks.push_back({{}, {}, {}, 2 * rows_, rows_, 0, 0});
    if (normed) norm();
    if (positions > 0) blocks.back().whole.push_back(positions * h_);
  }
  /// A classifier of `targets_` rows of a sample, which every tensor rank transforms and norms alike; where
  /// the sequence is cut, all its rows come together before some are picked.
  void picked_end(std::int64_t classes) {
    blocks.push_back({{}, {}, {}, 2 * targets_ + (sequence_parallel_ ? rows_ : 0), targets_, 0, 0});
    blocks.back().alike = {h_, h_};
    blocks.back().cut.push_back(padded(classes));
  }
  void branch() {
    blocks.push_back({{}, {}, {}, 4 * rows_, 2 * rows_, 2 * rows_, rows_});
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
  void layers(int count) {
    for (int i = 0; i < count; ++i) {
      attention(h_);
      mlp();
    }
  }

  void gpt(const Config& c) {
    const gpt::Settings& m = c.model.gpt;
    targets_ = rows_ = c.data.sequence;
    end(m.positions == Positions::learned ? m.context : 0, false);
    for (int i = 0; i < m.layers; ++i) {
      attention(m.width / m.heads * m.key_value_heads);
      mlp();
    }
    end(0, true);
    if (m.tied) return table(m.vocabulary, {0, last()});
    table(m.vocabulary, {0});
    table(m.vocabulary, {last()});
  }

  void bert(const Config& c) {
    const bert::Settings& m = c.model.bert;
    rows_ = c.data.sequence;
    targets_ = c.data.masked;
    end(m.context, true);
    blocks.back().alike.push_back(m.types * h_);
    layers(m.layers);
    picked_end(m.vocabulary);
    blocks.back().alike.insert(blocks.back().alike.end(), {h_ * h_, h_});  // the transform
    table(m.vocabulary, {0, last()});
  }

  /// Patches are multiplied by every tensor rank alike, for which a gradient's rows come together where the
  /// sequence is cut.
  void vit(const Config& c) {
    const vit::Settings& m = c.model.vit;
    const std::int64_t patches =
        std::int64_t{m.picture_height} * m.picture_width / (std::int64_t{m.patch} * m.patch);
    rows_ = padded_rows(patches + 1, static_cast<int>(shards_));
    targets_ = 1;
    blocks.push_back({{}, {}, {}, sequence_parallel_ ? rows_ : 0, 0, 0, 0});
    blocks.back().alike.push_back(h_ * m.channels * m.patch * m.patch);
    blocks.back().whole = {h_, h_, (patches + 1) * h_};  // bias, class, positions
    layers(m.layers);
    picked_end(m.classes);
    table(m.classes, {last()});
  }

  /// Embedding, (attention, MLP) x layers, bridge, (attention, cross attention, MLP) x layers, head.
  void transformer(const Config& c) {
    const transformer::Settings& m = c.model.transformer;
    const std::int64_t positions = m.positions == Places::learned ? m.first_position + m.context : 0;
    const bool pre_norm = m.order == BlockOrder::pre_norm;
    source_rows_ = rows_ = c.data.source_sequence;
    end(positions, false);
    layers(m.layers);
    targets_ = rows_ = c.data.target_sequence;
    bridge_ = last() + 1;
    end(positions, pre_norm);
    first_reader = bridge_ + 1;
    const int decoder_layers = m.decoder_layers > 0 ? m.decoder_layers : m.layers;
    for (int i = 0; i < decoder_layers; ++i) {
      attention(h_);
      cross_attention();
      mlp();
    }
    end(0, pre_norm);
    last_reader = last() - 2;
    if (m.tables == Tables::one) return table(m.vocabulary, {0, bridge_, last()});
    table(m.vocabulary, {0});
    if (m.tables == Tables::two) return table(m.vocabulary, {bridge_, last()});
    table(m.vocabulary, {bridge_});
    table(m.vocabulary, {last()});
  }

  /// A branch that every tensor rank computes alike: where the sequence is cut, its rows come together each
  /// way.
  void undivided(const std::vector<std::int64_t>& alike) {
    const std::int64_t gathered = sequence_parallel_ ? rows_ : 0;
    blocks.push_back({{}, {}, alike, 2 * gathered, 0, gathered, 0});
    norm();
  }
  /// Attention without biases.
  void plain_attention() {
    branch();
    blocks.back().cut = {3 * h_ * h_, h_ * h_};
  }
  void plain_cross_attention() {
    bias_ = false;
    cross_attention();
    bias_ = true;
    blocks.back().whole = {h_, h_};
  }
  /// Both attentions of one norm.
  void parallel() {
    plain_cross_attention();
    Block& both = blocks.back();
    both.cut.insert(both.cut.end(), {3 * h_ * h_, h_ * h_});
    both.halves += 4 * rows_;
    both.scatters += 2 * rows_;
    both.replayed += 2 * rows_;
    both.replayed_scatters += rows_;
  }

  /// The units of the encoder's and of the decoder's cells, in order, as the paper has them.
  void evolved(const Config& c) {
    const evolved_transformer::Settings& m = c.model.evolved_transformer;
    const std::int64_t h = h_, square = h * h, half = h / 2;
    inner_ = inner_rows_ = 4 * h;
    source_rows_ = rows_ = c.data.source_sequence;
    end(0, false);
    for (int i = 0; i < m.layers; ++i) {
      undivided({2 * square, 2 * h});
      undivided({4 * square, 4 * h, 3 * h * half, half, 4 * h, 4 * h, 9 * 4 * h, 4 * h * half, half});
      plain_attention();
      mlp();
    }
    targets_ = rows_ = c.data.target_sequence;
    bridge_ = last() + 1;
    end(0, true);
    first_reader = bridge_ + 1;
    for (int i = 0; i < m.decoder_layers; ++i) {
      parallel();
      undivided({11 * h, 2 * square, 2 * h, 7 * h, h * half, half, 2 * h, 2 * h, 7 * 2 * h, 2 * square, h});
      plain_attention();
      plain_cross_attention();
      undivided({4 * square, 4 * h, 4 * h, 4 * h, 4 * square});
      blocks.back().whole.push_back(h);  // the bias behind the second product
    }
    end(0, true);
    last_reader = last() - 2;
    table(m.vocabulary, {0, bridge_, last()});
  }

  void candidate(const Candidate& chosen) {
    const std::int64_t h = h_, k = chosen.numbers[0];
    switch (chosen.kind) {
      case CandidateKind::convolution:
        return undivided({k * h * h, h});
      case CandidateKind::separable:
        return undivided({k * h, h * h, h});
      case CandidateKind::light:
        return undivided({k * h / chosen.shared()});
      case CandidateKind::gated:
        return undivided({2 * h * h, 2 * h});
      case CandidateKind::attention:
        return plain_attention();
      case CandidateKind::cross:
        last_reader = last() + 1;
        return plain_cross_attention();
      case CandidateKind::mlp:
        inner_ = inner_rows_ = k * h;
        return mlp();
      case CandidateKind::normed_mlp:  // of cells, which stand in no case
      case CandidateKind::none:
      case CandidateKind::add:
      case CandidateKind::multiply:
      case CandidateKind::concat:
      case CandidateKind::identity:
        blocks.emplace_back();
        return;
      case CandidateKind::dilated:
      case CandidateKind::maximum:
      case CandidateKind::average:
        fail(Exit::internal, "{} is for pictures", chosen.word());
    }
  }
  /// The blocks of a space as they are chosen, between embeddings and head. A memory that nobody reads enters
  /// the first block of the decoder.
  void subnet(const Config& c) {
    const subnet::Settings& m = c.model.subnet;
    const bool pairs = m.space.has_encoder();
    source_rows_ = c.data.source_sequence;
    rows_ = pairs ? source_rows_ : c.data.sequence;
    end(m.context, false);
    for (int i = 0; i < m.space.blocks(); ++i) {
      if (pairs && !m.space.encodes(i) && bridge_ < 0) {
        rows_ = c.data.target_sequence;
        bridge_ = last() + 1;
        end(m.context, true);
        first_reader = last_reader = bridge_ + 1;
      }
      candidate(m.space.candidates(i)[m.choice[i]]);
    }
    targets_ = rows_;
    end(0, true);
    if (pairs) table(m.vocabulary, {0, bridge_, last()});
    else table(m.vocabulary, {0, last()});
  }

  /// Elements of a tensor of so many shards, each with those that fill its last 256 bytes.
  static std::int64_t filled(std::int64_t elements, std::int64_t shards = 1) {
    return (elements / shards + 63) / 64 * 64 * shards;
  }
  /// Gain, offset, and the running mean and variance.
  static void batch_norm(std::vector<std::int64_t>& tensors, std::int64_t elements) {
    tensors.insert(tensors.end(), 4, elements);
  }
  /// Two convolutions between numbers of `entering` and `leaving` pixels. The sum of its output and that of
  /// the gradient of what enters; where the sequence is cut, both inputs come together first.
  void pair_of_convolutions(std::int64_t entering, std::int64_t inputs, std::int64_t leaving,
                            std::int64_t outputs) {
    const std::int64_t in = entering * inputs, out = leaving * outputs;
    blocks.push_back({{}, {}, {}, 2 * (in + out), in + out, 2 * out, out, in});
    if (sequence_parallel_) {
      blocks.back().halves += in;  // x; the output is scattered alone, its gradient gathered
      blocks.back().replayed += in - out;
    }
    blocks.back().cut = {filled(9 * inputs * outputs, shards_), filled(9 * outputs * outputs, shards_)};
    batch_norm(blocks.back().alike, filled(inputs));
    batch_norm(blocks.back().cut, filled(outputs, shards_));
    if (inputs != outputs || entering != leaving) blocks.back().alike.push_back(filled(inputs * outputs));
  }

  /// A convolution, blocks in three groups of which two halve the picture, the mean and a classifier.
  void wide_resnet(const Config& c) {
    const wide_resnet::Settings& m = c.model.wide_resnet;
    targets_ = h_ = 1;
    std::int64_t pixels = std::int64_t{m.picture_height} * m.picture_width, channels = 16;
    blocks.push_back({{}, {}, {}, sequence_parallel_ ? pixels * channels : 0, 0, 0, 0});
    blocks.back().alike.push_back(filled(9 * m.channels * channels));
    for (int group = 0; group < 3; ++group)
      for (int i = 0; i < m.blocks_of_group(); ++i) {
        const std::int64_t outputs = (16 << group) * m.width,
                           left = group > 0 && i == 0 ? pixels / 4 : pixels;
        pair_of_convolutions(pixels, channels, left, outputs);
        pixels = left;
        channels = outputs;
      }
    const std::int64_t entering = pixels * channels;
    blocks.push_back(
        {{}, {}, {}, 2 * channels + (sequence_parallel_ ? entering : 0), channels, 0, 0, entering});
    batch_norm(blocks.back().alike, filled(channels));
    blocks.back().cut.push_back(padded(m.classes));
    tables.push_back({padded(m.classes) * channels, {last()}});
  }

  std::int64_t shards_;
  bool sequence_parallel_, bias_ = false;
  std::int64_t h_ = 0, inner_ = 0, inner_rows_ = 0;
  std::int64_t rows_ = 0, source_rows_ = 0, targets_ = 0;  ///< rows and targets of a sample
  int bridge_ = -1;
};

}  // namespace mindpipe
