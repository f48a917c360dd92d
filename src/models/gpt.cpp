#include "layers/embedding.h"
#include "models/gpt_names.h"
#include "models/residual_blocks.h"

namespace mindpipe {

/// Makes a decoder-only model in GPT-2's or Llama's style: embedding, (attention, MLP) x layers, classifier.
std::unique_ptr<Model> make_gpt(const Config& config, const LayerContext& context) {
  const ModelConfig& m = config.model;
  const int shards = context.tensor.logical();
  require_divisible(m.heads, shards, "model.heads");
  require_divisible(m.key_value_heads, shards, "model.key_value_heads");
  require_divisible(m.mlp_width, shards, "model.mlp_width");

  auto model = std::make_unique<GptModel>(m);
  Unit& table = model->add_unit("embedding");
  Unit& positions = model->add_unit("positions");
  const bool learned = m.positions == Positions::learned;
  model->add_block(
      "embedding",
      std::make_unique<Embedding>(context, table, positions, "embedding",
                                  EmbeddingSpec{m.vocabulary, m.width, learned ? m.context : 0, m.dropout,
                                                m.initial_deviation, false, m.tied ? 2 : 1, 0}),
      {&table, &positions});

  ResidualBlocks blocks(*model, config, context, 2 * m.layers);
  AttentionSpec attention = blocks.attention();
  attention.key_value_heads = m.key_value_heads;
  attention.rotary = !learned;
  attention.rotary_base = m.rotary_base;
  for (int i = 0; i < m.layers; ++i) {
    const std::string layer = "layers." + std::to_string(i);
    blocks.add_self_attention(layer + ".attention", attention);
    blocks.add_mlp(layer + ".mlp");
  }

  if (m.tied) blocks.add_head(&table, 2, 1);
  else blocks.add_head(nullptr, 1, 0);
  return model;
}

}  // namespace mindpipe
