#include <cmath>

#include "layers/attention.h"
#include "layers/classifier.h"
#include "layers/embedding.h"
#include "layers/mlp.h"
#include "models/gpt_names.h"

namespace mindpipe {

/// A decoder-only language model, in GPT-2's or Llama's style by options: embedding, (attention, MLP) x
/// layers, classifier.
std::unique_ptr<Model> make_gpt(const Config& config, const LayerContext& context) {
  const ModelConfig& m = config.model;
  const int shards = context.tensor.logical();
  require_divisible(m.heads, shards, "model.heads");
  require_divisible(m.key_value_heads, shards, "model.key_value_heads");
  require_divisible(m.mlp_width, shards, "model.mlp_width");
  const NormKind norm = m.norm == ModelNorm::rms ? NormKind::rms : NormKind::layer;
  const bool offset = norm == NormKind::layer && m.bias;
  // Products that end a residual branch start smaller, so that the stream's variance does not grow with depth
  // (GPT-2).
  const double output_deviation = m.initial_deviation / std::sqrt(2.0 * m.layers);

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

  AttentionSpec attention;
  attention.width = m.width, attention.heads = m.heads, attention.key_value_heads = m.key_value_heads,
  attention.head_width = m.width / m.heads;
  attention.rotary = !learned, attention.rotary_base = m.rotary_base, attention.bias = m.bias,
  attention.dropout = m.attention_dropout;
  attention.deviation = m.initial_deviation, attention.output_deviation = output_deviation,
  attention.cache_rows = m.context;
  const MlpSpec mlp{m.width, m.mlp_width,         Activation::gelu, m.mlp == MlpKind::swiglu,
                    m.bias,  m.initial_deviation, output_deviation};

  const auto add = [&](const std::string& path, const std::string& part, auto make_branch) {
    Unit& unit = model->add_unit(path);
    Norm normed(context, unit, "norm", norm, m.width, m.norm_epsilon, offset);
    auto branch = make_branch(unit);
    const Param bias = m.bias ? residual_bias(unit, part + ".output", m.width) : Param{};
    model->add_block(path,
                     maybe_recomputed(config, std::make_unique<ResidualBlock>(
                                                  context, normed, std::move(branch), bias, m.dropout, path)),
                     {&unit});
  };
  for (int i = 0; i < m.layers; ++i) {
    const std::string layer = "layers." + std::to_string(i);
    add(layer + ".attention", "attention", [&](Unit& unit) {
      return std::make_unique<SelfAttention>(context, unit, "attention", layer + ".attention", attention);
    });
    add(layer + ".mlp", "mlp", [&](Unit& unit) { return std::make_unique<Mlp>(context, unit, "mlp", mlp); });
  }

  Unit& last = model->add_unit("head");
  ClassifierSpec head{m.vocabulary, m.width, m.initial_deviation};
  head.norm = norm, head.epsilon = m.norm_epsilon, head.norm_offset = offset;
  if (m.tied) head.uses = 2, head.use = 1;
  else head.table = "classifier";
  Unit& head_table = m.tied ? table : last;
  model->add_block("head", std::make_unique<Classifier>(context, head_table, last, head),
                   m.tied ? std::vector<Unit*>{&table, &last} : std::vector<Unit*>{&last}, head.use);
  return model;
}

}  // namespace mindpipe
