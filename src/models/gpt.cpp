#include "config/sections/data.h"
#include "layers/embedding.h"
#include "models/gpt_names.h"
#include "models/make.h"
#include "models/residual_blocks.h"

namespace mindpipe::gpt {
namespace {

/// What others ask of the model: its samples, its speed, its texts.
void describe(Model& model, const Settings& m, const DataConfig& data) {
  const std::int64_t rows = data.sequence;
  model.add_field({field::tokens, DType::i32, {rows}, m.vocabulary});
  model.add_field({field::targets, DType::i32, {rows}, m.vocabulary});
  model.stream({rows, m.width});
  model.count_in({"token", rows});
  model.continue_texts({m.context, m.vocabulary});
}

/// 6 operations a parameter and token, and those of causal attention.
void estimate(Model& model, const Settings& m, const DataConfig& data) {
  model.estimate({"6N + 6Lhq", 6.0 * static_cast<double>(model.parameters()) +
                                   6.0 * m.layers * m.heads * m.head_width * data.sequence});
}

}  // namespace

/// Makes a decoder-only model in GPT-2's or Llama's style: embedding, (attention, MLP) x layers, classifier.
std::unique_ptr<Model> make(const Settings& m, const DataConfig& data, const TrainConfig& train,
                            const LayerContext& context) {
  const int shards = context.tensor.logical();
  require_divisible(m.heads, shards, "model.heads");
  require_divisible(m.key_value_heads, shards, "model.key_value_heads");
  require_divisible(m.mlp_width, shards, "model.mlp_width");

  auto model = std::make_unique<Model>();
  describe(*model, m, data);
  model->export_as(names_for(m));
  model->expect_in_files(file_names_for(m));
  Unit& table = model->add_unit("embedding");
  Unit& positions = model->add_unit("positions");
  const bool learned = m.positions == Positions::learned;
  model->add_block("embedding",
                   std::make_unique<Embedding>(context, table, positions, "embedding",
                                               EmbeddingSpec{.vocabulary = m.vocabulary,
                                                             .width = m.width,
                                                             .positions = learned ? m.context : 0,
                                                             .dropout = m.dropout,
                                                             .deviation = m.initial_deviation,
                                                             .uses = m.tied ? 2 : 1}),
                   {&table, &positions});

  ResidualBlocks blocks(*model, train, m, context, 2 * m.layers);
  AttentionSpec attention = blocks.attention();
  attention.key_value_heads = m.key_value_heads;
  attention.rotary = !learned;
  if (!learned) attention.frequencies = frequencies(m);
  attention.head_width = m.head_width;
  attention.bias = m.bias || m.qkv_bias;
  attention.head_norms = m.qk_norm;
  attention.norm_epsilon = m.norm_epsilon;
  attention.cache_rows = m.context;
  blocks.add_layers("layers", m.layers, attention);

  if (m.tied) blocks.add_head(m.vocabulary, &table, 2, 1);
  else blocks.add_head(m.vocabulary, nullptr, 1, 0);
  estimate(*model, m, data);
  return model;
}

}  // namespace mindpipe::gpt
