#pragma once
#include "runtime/small_models.h"
#include "spaces.h"

/// Small models of every kind, as those of transformers are that they are compared with.
namespace mindpipe::oracle {

/// The small configuration as one of another kind. AdamW's epsilon is above what rounding leaves of a
/// gradient of zero, by whose size the first steps would divide it.
inline Config small_of_kind(ModelKind kind) {
  Config config = small_config();
  config.model.kind = kind;
  BlockSettings& m = block_model(config);
  m.layers = 2;
  m.width = 48;
  m.heads = 4;
  config.optimizer.epsilon = 1e-5;
  return config;
}

/// Texts shorter than the context; the padding is the commonest token.
inline Config bert_style() {
  Config config = small_of_kind(ModelKind::bert);
  config.model.bert.context = 24;
  config.model.bert.vocabulary = 101;
  config.data.sequence = 20;
  config.data.masked = 7;
  config.data.special = {.end = 97, .start = 98, .padding = 0, .mask = 99};
  return config;
}

/// MarianMTModel: sources and targets of different lengths, sides of different depths. Targets begin with
/// the padding.
inline Config marian_style(Tables tables = Tables::one) {
  Config config = small_of_kind(ModelKind::transformer);
  transformer::Settings& m = config.model.transformer;
  m.context = 24;
  m.vocabulary = 101;
  m.decoder_layers = 3;
  m.mlp = MlpKind::silu;
  m.tables = tables;
  config.data.source_sequence = 13;
  config.data.target_sequence = 10;
  config.data.special = {.end = 0, .start = 98, .padding = 98, .mask = 99};
  return config;
}

/// M2M100ForConditionalGeneration: the first token stands behind the place of padding.
inline Config m2m100_style() {
  Config config = marian_style();
  transformer::Settings& m = config.model.transformer;
  m.decoder_layers = 1;
  m.order = BlockOrder::pre_norm;
  m.positions = Places::closed_sinusoids;
  m.first_position = 2;
  m.mlp = MlpKind::relu;
  config.data.source_sequence = 9;
  config.data.target_sequence = 14;
  config.data.special = {.end = 2, .start = 0, .padding = 1, .mask = 99};
  return config;
}

/// An Evolved Transformer whose taps reach beyond the rows of its samples.
inline Config evolved_style() {
  Config config = small_of_kind(ModelKind::evolved_transformer);
  evolved_transformer::Settings& m = config.model.evolved_transformer;
  m.context = 24;
  m.vocabulary = 101;
  m.decoder_layers = 1;
  config.data.source_sequence = 13;
  config.data.target_sequence = 10;
  config.data.special = {.end = 0, .start = 98, .padding = 98, .mask = 99};
  return config;
}

/// A network of cells with every combiner, norm and activation, states of other widths, and branches that
/// read the second state before them.
inline Config cells_style() {
  Config config = small_of_kind(ModelKind::subnet);
  choose(
      config,
      "{name: every, encoder: {cells: 1, blocks: ["
      "{left: {norm: shared, layer: conv-3, width: 2, activation: relu}, right: {norm: shared, layer: "
      "separable-3, width: 1/2}, combine: multiply}, "
      "{left: {norm: own, layer: glu, activation: silu}, right: {input: 2, layer: conv-1, width: 1/2, "
      "activation: gelu}, combine: concat, residual: 2}, "
      "{left: {norm: own, layer: light-3-4, activation: silu}, right: {input: 2, norm: own, layer: "
      "identity, activation: gelu}}, "
      "{left: {norm: own, layer: conv-1}}, {left: {norm: own, layer: attention-4}, right: identity}]}, "
      "decoder: {cells: 2, blocks: ["
      "{left: {norm: own, layer: attention-4, activation: silu}, right: {norm: own, layer: cross-4}, "
      "combine: multiply, residual: 1}, "
      "{left: {norm: own, layer: mlp-2, activation: gelu}, right: {input: 2, layer: identity}, combine: "
      "multiply}, "
      "{left: {norm: own, layer: separable-3, width: 2, activation: silu}, right: {input: 2, norm: own, "
      "layer: mlp-2, activation: gelu}}, "
      "{left: {norm: shared, layer: normed_mlp-2, activation: silu}, right: {norm: shared, layer: conv-3}, "
      "combine: multiply}, "
      "{left: {norm: own, layer: conv-1}, right: {input: 2, layer: conv-1}, combine: add}]}}",
      {});
  subnet::Settings& m = config.model.subnet;
  m.choice.assign(static_cast<std::size_t>(m.space.blocks()), 0);
  m.positions = Places::closed_sinusoids;
  m.context = 24;
  m.vocabulary = 101;
  config.data.source_sequence = 13;
  config.data.target_sequence = 10;
  config.data.special = {.end = 0, .start = 98, .padding = 98, .mask = 99};
  return config;
}

/// A network of a space with every word on either side that may have it.
inline Config of_pairs_style() {
  Config config = small_of_kind(ModelKind::subnet);
  choose(
      config,
      "{name: words, encoder: {blocks: 8, candidates: [conv-1, conv-3, separable-5, light-5-4, attention-4, "
      "glu, mlp-2, identity]}, decoder: {blocks: 9, candidates: [conv-5, conv-1, separable-3, light-3-2, "
      "attention-2, cross-4, glu, mlp-3, identity]}}",
      {1, 4, 0, 3, 7, 5, 2, 6, 4, 0, 5, 3, 8, 1, 6, 2, 7});
  config.model.subnet.context = 24;
  config.model.subnet.vocabulary = 101;
  config.data.source_sequence = 13;
  config.data.target_sequence = 10;
  config.data.special = {.end = 0, .start = 98, .padding = 98, .mask = 99};
  return config;
}

/// A language model of every word that may be in one.
inline Config of_texts_style() {
  Config config = small_of_kind(ModelKind::subnet);
  choose(
      config,
      "{name: words, decoder: {blocks: 8, candidates: [conv-5, conv-1, separable-3, light-3-4, attention-4, "
      "glu, mlp-2, identity]}}",
      {4, 0, 2, 7, 5, 3, 1, 6});
  config.model.subnet.context = 24;
  config.model.subnet.vocabulary = 101;
  return config;
}

/// ViTForImageClassification: pictures that are higher than wide, of 7 rows with the class token.
inline Config vit_style() {
  Config config = small_of_kind(ModelKind::vit);
  vit::Settings& m = config.model.vit;
  m.picture_height = 12;
  m.picture_width = 8;
  m.patch = 4;
  m.classes = 11;
  m.mean = {0.4, 0.5, 0.6};
  m.deviation = {0.2, 0.3, 0.4};
  return config;
}

/// A network of a space of pictures, which are 16 x 16 pixels. `groups`: "{blocks: 1, width: 8}, ..."; of the
/// candidates, the numbers in `choice` are taken.
inline Config picture_space_style(const std::string& groups, const std::vector<int>& choice) {
  Config config = small_config();
  config.model = {};
  choose(config,
         fmt::format("{{name: s, pictures: {{groups: [{}], candidates: [conv-1, conv-3, conv-5, separable-3, "
                     "separable-5, dilated-3, max-3, average-3, identity]}}}}",
                     groups),
         choice);
  subnet::Settings& m = config.model.subnet;
  m.picture_height = m.picture_width = 16;
  m.classes = 11;
  m.mean = {0.4, 0.5, 0.6};
  m.deviation = {0.2, 0.3, 0.4};
  m.norm_epsilon = 1e-5;
  OptimizerConfig& o = config.optimizer;
  o.kind = OptimizerKind::sgd;
  o.momentum = 0.9;
  o.nesterov = true;
  o.weight_decay = 0.01;
  return config;
}
/// Each word where the picture keeps its size, and where it is halved. Before what halves it without a relu,
/// and at the end, stands conv-1.
inline Config picture_words_that_keep() {
  return picture_space_style("{blocks: 9, width: 8}, {blocks: 2, width: 12}",
                             {2, 3, 5, 6, 4, 7, 8, 1, 0, 6, 0});
}
inline Config picture_words_that_halve() {
  return picture_space_style("{blocks: 2, width: 8}, {blocks: 2, width: 8}, {blocks: 2, width: 12}",
                             {5, 0, 8, 0, 7, 0});
}

/// Pictures that are higher than wide, and end as six pixels.
inline Config wide_resnet_style() {
  Config config = small_config();
  config.model.kind = ModelKind::wide_resnet;
  wide_resnet::Settings& m = config.model.wide_resnet;
  m.depth = 10;
  m.width = 1;
  m.picture_height = 12;
  m.picture_width = 8;
  m.classes = 11;
  m.mean = {0.4, 0.5, 0.6};
  m.deviation = {0.2, 0.3, 0.4};
  OptimizerConfig& o = config.optimizer;
  o.kind = OptimizerKind::sgd;
  o.momentum = 0.9;
  o.nesterov = true;
  o.weight_decay = 0.01;
  return config;
}

}  // namespace mindpipe::oracle
