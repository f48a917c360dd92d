#include "layers/bridge.h"
#include "layers/embedding.h"
#include "models/residual_blocks.h"

namespace mindpipe::translator {
namespace {

/// What others ask of the model: its samples, pairs of a source and a target, and its speed.
void describe(Model& model, const Config& config) {
  const Settings& m = config.model.translator;
  const std::int64_t rows = config.data.sequence;
  model.add_field({field::source, DType::i32, {config.data.source_sequence}, m.vocabulary});
  model.add_field({field::source_lengths, DType::i32, {1}});
  model.add_field({field::tokens, DType::i32, {rows}, m.vocabulary});
  model.add_field({field::targets, DType::i32, {rows}, m.vocabulary});
  model.count_in({"token", rows});
}

void estimate(Model& model, const Config& config) {
  const Settings& m = config.model.translator;
  model.estimate({"6N + 6Lhq", 6.0 * static_cast<double>(model.parameters()) +
                                   6.0 * m.layers * m.width * config.data.sequence});
}

void add_encoder(ResidualBlocks& blocks, int layers, AttentionSpec attention) {
  attention.causal = false;
  attention.key_lengths = field::source_lengths;
  for (int i = 0; i < layers; ++i) {
    const std::string layer = "encoder." + std::to_string(i);
    blocks.add_self_attention(layer + ".attention", attention);
    blocks.add_mlp(layer + ".mlp");
  }
}

/// Adds the decoder, and says that the encoder's output, of that shape, enters it up to its last reader.
void add_decoder(Model& model, ResidualBlocks& blocks, int layers, const AttentionSpec& attention,
                 const Shape& memory) {
  AttentionSpec cross = attention;
  cross.key_lengths = field::source_lengths;
  const std::size_t first_reader = model.blocks().size();
  std::size_t last_reader = first_reader;
  for (int i = 0; i < layers; ++i) {
    const std::string layer = "decoder." + std::to_string(i);
    blocks.add_self_attention(layer + ".attention", attention);
    last_reader = model.blocks().size();
    blocks.add_cross_attention(layer + ".cross", cross);
    blocks.add_mlp(layer + ".mlp");
  }
  model.carry_memory(first_reader, last_reader, memory);
}

}  // namespace

/// Makes an encoder-decoder Transformer (pre-norm): `layers` of each, one table, padding by source lengths.
std::unique_ptr<Model> make(const Config& config, const LayerContext& context) {
  const Settings& m = config.model.translator;
  const int shards = context.tensor.logical();
  require_divisible(m.heads, shards, "model.heads");
  require_divisible(m.mlp_width, shards, "model.mlp_width");

  auto model = std::make_unique<Model>();
  describe(*model, config);
  Unit& table = model->add_unit("embedding");
  const auto embedding = [&](Unit& positions, const std::string& path, std::string_view ids, int use) {
    return std::make_unique<Embedding>(context, table, positions, path,
                                       EmbeddingSpec{.vocabulary = m.vocabulary,
                                                     .width = m.width,
                                                     .positions = m.context,
                                                     .dropout = m.dropout,
                                                     .deviation = m.initial_deviation,
                                                     .field = ids,
                                                     .uses = 3,
                                                     .use = use});
  };
  ResidualBlocks blocks(*model, config, m, context, 4 * m.layers);
  const AttentionSpec attention = blocks.attention();
  const Shape memory{config.data.source_sequence, m.width};

  model->stream(memory);
  Unit& source = model->add_unit("encoder.positions");
  model->add_block("encoder.embedding", embedding(source, "encoder.embedding", field::source, 0),
                   {&table, &source});
  add_encoder(blocks, m.layers, attention);

  model->stream({config.data.sequence, m.width});
  Unit& bridge = model->add_unit("bridge");
  model->add_block(
      "bridge",
      std::make_unique<Bridge>(context, blocks.norm(bridge), embedding(bridge, "bridge", field::tokens, 1)),
      {&table, &bridge}, 1);
  add_decoder(*model, blocks, m.layers, attention, memory);
  blocks.add_head(m.vocabulary, &table, 3, 2);
  estimate(*model, config);
  return model;
}

}  // namespace mindpipe::translator
