#include "models/residual_blocks.h"

#include <cmath>

#include "config/sections/train.h"
#include "layers/mlp.h"

namespace mindpipe {

ResidualBlocks::ResidualBlocks(Model& model, const TrainConfig& train, const BlockSettings& settings,
                               const LayerContext& context, BlockOrder order, double output_deviation)
    : model_(model),
      train_(train),
      settings_(settings),
      context_(context),
      order_(order),
      output_deviation_(output_deviation) {}

ResidualBlocks::ResidualBlocks(Model& model, const TrainConfig& train, const BlockSettings& settings,
                               const LayerContext& context, int branches)
    : ResidualBlocks(model, train, settings, context, BlockOrder::pre_norm,
                     settings.initial_deviation / std::sqrt(static_cast<double>(branches))) {}

ResidualBlocks::ResidualBlocks(Model& model, const TrainConfig& train, const BlockSettings& settings,
                               const LayerContext& context)
    : ResidualBlocks(model, train, settings, context, BlockOrder::post_norm, settings.initial_deviation) {}

template <class AnyBranch, class... Parts>
void ResidualBlocks::add(const std::string& path, const std::string& part, const Parts&... parts) {
  const BlockSettings& m = settings_;
  Unit& unit = model_.add_unit(path);
  Norm own = norm(unit);
  auto branch = std::make_unique<AnyBranch>(context_, unit, part, parts...);
  const Param bias = m.bias ? residual_bias(unit, part + ".output", m.width) : Param{};
  std::unique_ptr<Layer> block;
  if (order_ == BlockOrder::pre_norm)
    block = std::make_unique<ResidualBlock>(context_, own, std::move(branch), bias, m.dropout, path);
  else block = std::make_unique<PostNormBlock>(context_, own, std::move(branch), bias, m.dropout, path);
  model_.add_block(path, std::move(block), {&unit});
}

void ResidualBlocks::add_self_attention(const std::string& path, const AttentionSpec& spec) {
  add<SelfAttention>(path, "attention", path, spec);
}

void ResidualBlocks::add_cross_attention(const std::string& path, const AttentionSpec& spec) {
  add<CrossAttention>(path, "cross", path, spec);
}

void ResidualBlocks::add_mlp(const std::string& path) {
  const BlockSettings& m = settings_;
  add<Mlp>(path, "mlp",
           MlpSpec{m.width, m.mlp_width, activation(), m.mlp == MlpKind::swiglu, m.bias, m.initial_deviation,
                   output_deviation_});
}

void ResidualBlocks::add_layers(const std::string& path, int layers, const AttentionSpec& spec) {
  for (int i = 0; i < layers; ++i) {
    const std::string layer = path + "." + std::to_string(i);
    add_self_attention(layer + ".attention", spec);
    add_mlp(layer + ".mlp");
  }
}

/// What stands between the two products of an MLP; a gated one has its own.
Activation ResidualBlocks::activation() const {
  switch (settings_.mlp) {
    case MlpKind::gelu_exact:
      return Activation::gelu_exact;
    case MlpKind::relu:
      return Activation::relu;
    case MlpKind::silu:
    case MlpKind::swiglu:
      return Activation::silu;
    case MlpKind::gelu:
      break;
  }
  return Activation::gelu;
}

Norm ResidualBlocks::norm(Unit& unit) const {
  const BlockSettings& m = settings_;
  return {context_, unit, "norm", norm_kind(), m.width, m.norm_epsilon, has_norm_offset()};
}

AttentionSpec ResidualBlocks::attention() const {
  const BlockSettings& m = settings_;
  return {.width = m.width,
          .heads = m.heads,
          .key_value_heads = m.heads,
          .head_width = m.width / m.heads,
          .bias = m.bias,
          .dropout = m.attention_dropout,
          .deviation = m.initial_deviation,
          .output_deviation = output_deviation_};
}

void ResidualBlocks::add_head(std::int64_t vocabulary, Unit* table, int uses, int use, bool with_constant) {
  const BlockSettings& m = settings_;
  const ClassifierSpec spec{.vocabulary = vocabulary,
                            .width = m.width,
                            .deviation = m.initial_deviation,
                            .uses = uses,
                            .use = use,
                            .table = table != nullptr ? "embedding" : "classifier",
                            .norm = norm_kind(),
                            .epsilon = m.norm_epsilon,
                            .norm_offset = has_norm_offset(),
                            .label_smoothing = train_.label_smoothing,
                            .bias = with_constant,
                            .constant_bias = with_constant,
                            .normed = order_ == BlockOrder::pre_norm};
  Unit& last = model_.add_unit("head");
  std::vector<Unit*> units{&last};
  if (table != nullptr) units.push_back(table);
  model_.add_block("head", std::make_unique<Classifier>(context_, *units.back(), last, spec), units, use);
}

}  // namespace mindpipe
