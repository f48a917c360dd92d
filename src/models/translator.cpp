#include "layers/bridge.h"
#include "layers/embedding.h"
#include "models/residual_blocks.h"

namespace mindpipe {

/// Makes an encoder-decoder Transformer (pre-norm): `layers` of each, one table, padding by source lengths.
std::unique_ptr<Model> make_translator(const Config& config, const LayerContext& context) {
  const ModelConfig& m = config.model;
  const int shards = context.tensor.logical();
  require_divisible(m.heads, shards, "model.heads");
  require_divisible(m.mlp_width, shards, "model.mlp_width");

  auto model = std::make_unique<Model>();
  Unit& table = model->add_unit("embedding");
  const auto embedding = [&](Unit& positions, const std::string& path, bool source, int use) {
    return std::make_unique<Embedding>(
        context, table, positions, path,
        EmbeddingSpec{m.vocabulary, m.width, m.context, m.dropout, m.initial_deviation, source, 3, use});
  };
  ResidualBlocks blocks(*model, config, context, 4 * m.layers);
  AttentionSpec attention = blocks.attention();

  Unit& source = model->add_unit("encoder.positions");
  model->add_block("encoder.embedding", embedding(source, "encoder.embedding", true, 0), {&table, &source});
  attention.causal = false;
  for (int i = 0; i < m.layers; ++i) {
    const std::string layer = "encoder." + std::to_string(i);
    blocks.add_self_attention(layer + ".attention", attention);
    blocks.add_mlp(layer + ".mlp");
  }
  Unit& bridge = model->add_unit("bridge");
  model->add_block(
      "bridge", std::make_unique<Bridge>(context, blocks.norm(bridge), embedding(bridge, "bridge", false, 1)),
      {&table, &bridge}, 1);
  const std::size_t first_reader = model->blocks().size();
  std::size_t last_reader = first_reader;
  attention.causal = true;
  for (int i = 0; i < m.layers; ++i) {
    const std::string layer = "decoder." + std::to_string(i);
    blocks.add_self_attention(layer + ".attention", attention);
    last_reader = model->blocks().size();
    blocks.add_cross_attention(layer + ".cross", attention);
    blocks.add_mlp(layer + ".mlp");
  }
  blocks.add_head(&table, 3, 2);
  for (std::size_t i = first_reader; i <= last_reader; ++i) model->blocks()[i].reads_encoder = true;
  return model;
}

}  // namespace mindpipe
