#include "models/residual_blocks.h"

#include "layers/mlp.h"

namespace mindpipe {

void ResidualBlocks::add(const std::string& path, const std::string& part, const MakeBranch& make_branch) {
  const ModelConfig& m = config_.model;
  Unit& unit = model_.add_unit(path);
  Norm opening = norm(unit);
  auto branch = make_branch(unit);
  const Param bias = m.bias ? residual_bias(unit, part + ".output", m.width) : Param{};
  auto block = std::make_unique<ResidualBlock>(context_, opening, std::move(branch), bias, m.dropout, path);
  model_.add_block(path, maybe_recomputed(config_, std::move(block)), {&unit});
}

void ResidualBlocks::add_self_attention(const std::string& path, const AttentionSpec& spec) {
  add(path, "attention",
      [&](Unit& unit) { return std::make_unique<SelfAttention>(context_, unit, "attention", path, spec); });
}

void ResidualBlocks::add_cross_attention(const std::string& path, const AttentionSpec& spec) {
  add(path, "cross",
      [&](Unit& unit) { return std::make_unique<CrossAttention>(context_, unit, "cross", path, spec); });
}

void ResidualBlocks::add_mlp(const std::string& path) {
  const ModelConfig& m = config_.model;
  const MlpSpec spec{m.width, m.mlp_width,         Activation::gelu, m.mlp == MlpKind::swiglu,
                     m.bias,  m.initial_deviation, output_deviation_};
  add(path, "mlp", [&](Unit& unit) { return std::make_unique<Mlp>(context_, unit, "mlp", spec); });
}

Norm ResidualBlocks::norm(Unit& unit) const {
  const ModelConfig& m = config_.model;
  return {context_, unit, "norm", norm_kind(), m.width, m.norm_epsilon, has_norm_offset()};
}

AttentionSpec ResidualBlocks::attention() const {
  const ModelConfig& m = config_.model;
  return {.width = m.width,
          .heads = m.heads,
          .key_value_heads = m.heads,
          .head_width = m.width / m.heads,
          .bias = m.bias,
          .dropout = m.attention_dropout,
          .deviation = m.initial_deviation,
          .output_deviation = output_deviation_,
          .cache_rows = m.context};
}

ClassifierSpec ResidualBlocks::classifier(int uses, int use) const {
  const ModelConfig& m = config_.model;
  return {.vocabulary = m.vocabulary,
          .width = m.width,
          .deviation = m.initial_deviation,
          .uses = uses,
          .use = use,
          .norm = norm_kind(),
          .epsilon = m.norm_epsilon,
          .norm_offset = has_norm_offset(),
          .label_smoothing = config_.train.label_smoothing};
}

}  // namespace mindpipe
