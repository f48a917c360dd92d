#include <cmath>

#include "layers/attention.h"
#include "layers/bridge.h"
#include "layers/classifier.h"
#include "layers/embedding.h"
#include "layers/mlp.h"
#include "models/model.h"

namespace mindpipe {

/// An encoder-decoder Transformer (pre-norm): `layers` of each, one table for source, target and softmax,
/// padding told by source lengths.
std::unique_ptr<Model> make_translator(const Config& config, const LayerContext& context) {
  const ModelConfig& m = config.model;
  const int shards = context.tensor.logical();
  require_divisible(m.heads, shards, "model.heads");
  require_divisible(m.mlp_width, shards, "model.mlp_width");
  const NormKind norm = m.norm == ModelNorm::rms ? NormKind::rms : NormKind::layer;
  const bool offset = norm == NormKind::layer && m.bias;
  const double output_deviation = m.initial_deviation / std::sqrt(4.0 * m.layers);

  auto model = std::make_unique<Model>();
  Unit& table = model->add_unit("embedding");
  const auto embedding = [&](Unit& positions, const std::string& path, bool source, int use) {
    return std::make_unique<Embedding>(
        context, table, positions, path,
        EmbeddingSpec{m.vocabulary, m.width, m.context, m.dropout, m.initial_deviation, source, 3, use});
  };
  AttentionSpec attention;
  attention.width = m.width, attention.heads = attention.key_value_heads = m.heads,
  attention.head_width = m.width / m.heads;
  attention.bias = m.bias, attention.dropout = m.attention_dropout;
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
  const auto add_attention = [&](const std::string& path, bool causal) {
    AttentionSpec spec = attention;
    spec.causal = causal;
    add(path, "attention",
        [&](Unit& unit) { return std::make_unique<SelfAttention>(context, unit, "attention", path, spec); });
  };
  const auto add_mlp = [&](const std::string& path) {
    add(path, "mlp", [&](Unit& unit) { return std::make_unique<Mlp>(context, unit, "mlp", mlp); });
  };

  Unit& source = model->add_unit("encoder.positions");
  model->add_block("encoder.embedding", embedding(source, "encoder.embedding", true, 0), {&table, &source});
  for (int i = 0; i < m.layers; ++i) {
    add_attention("encoder." + std::to_string(i) + ".attention", false);
    add_mlp("encoder." + std::to_string(i) + ".mlp");
  }
  Unit& bridge = model->add_unit("bridge");
  model->add_block(
      "bridge",
      std::make_unique<Bridge>(context, Norm(context, bridge, "norm", norm, m.width, m.norm_epsilon, offset),
                               embedding(bridge, "bridge", false, 1)),
      {&table, &bridge}, 1);
  const std::size_t first_reader = model->blocks().size();
  std::size_t last_reader = first_reader;
  for (int i = 0; i < m.layers; ++i) {
    const std::string layer = "decoder." + std::to_string(i);
    add_attention(layer + ".attention", true);
    last_reader = model->blocks().size();
    add(layer + ".cross", "cross", [&](Unit& unit) {
      return std::make_unique<CrossAttention>(context, unit, "cross", layer + ".cross", attention);
    });
    add_mlp(layer + ".mlp");
  }
  Unit& last = model->add_unit("head");
  ClassifierSpec head{m.vocabulary, m.width, m.initial_deviation, 3, 2};
  head.norm = norm, head.epsilon = m.norm_epsilon, head.norm_offset = offset;
  model->add_block("head", std::make_unique<Classifier>(context, table, last, head), {&table, &last},
                   head.use);
  for (std::size_t i = first_reader; i <= last_reader; ++i) model->blocks()[i].memory_in = true;
  return model;
}

}  // namespace mindpipe
