#pragma once
#include "layers/gradient_check.h"
#include "models/model.h"
#include "spaces.h"
#include "text_model.h"

/// Small models of every kind, whole, for checks of their gradients.
namespace mindpipe::testing {

inline void become_small(BlockSettings& m) {
  m.layers = 2;
  m.width = 16;
  m.heads = 4;
  m.mlp_width = 24;
  m.mlp = MlpKind::gelu;
  m.dropout = 0.1;
  m.attention_dropout = 0.1;
}

/// A small model that reads texts: a gpt in GPT-2's style, an encoder-decoder of the same blocks, a BERT.
inline Config small(ModelKind kind) {
  Config config;
  config.model.kind = kind;
  become_plain(config.model.transformer);
  TextSettings& m = text_model(config);
  become_small(m);
  m.context = 8;
  m.vocabulary = 100;
  config.train.label_smoothing = 0.05;
  return config;
}

/// A whole model's blocks and units, from tokens to losses.
inline Subject::Build model_of(Config config) {
  config = resolve(config);
  return [=](Subject& s) {
    const auto model = make_model(config, s.context());
    for (auto& unit : model->units()) s.add(std::move(unit));
    for (Model::Block& block : model->blocks()) s.add(std::move(block.layer), block.reads_encoder());
  };
}

/// Tensors without a gradient: the biases of keys, which softmax does not feel where no rotation comes in
/// between.
inline std::vector<std::string> key_biases(const Config& config) {
  std::vector<std::string> names;
  for (int i = 0; i < 3; ++i) {  // more layers than any has
    const std::string n = std::to_string(i);
    for (const char* unit : {"layers.", "encoder.", "decoder."})
      names.push_back(unit + n + ".attention.attention.k.bias");
    names.push_back("decoder." + n + ".cross.cross.k.bias");
  }
  if (config.model.kind == ModelKind::gpt && config.model.gpt.positions == Positions::rotary) names.clear();
  return names;
}

/// The batch that a model reads, of which some targets do not count.
inline Setting setting_for(const Config& given) {
  const Config config = resolve(given);
  Setting setting;
  setting.activation = false;
  setting.classifier = true;
  setting.step = 1e-4;  // deep functions bend
  setting.without_gradient = key_biases(config);
  const auto see = [&](const PictureSettings& seer, int side) {
    setting.vocabulary = seer.classes;
    setting.picture = {seer.channels, seer.picture_height, seer.picture_width, side};
    setting.targets = 1;
    return setting;
  };
  switch (config.model.kind) {
    case ModelKind::vit:
      return see(config.model.vit, config.model.vit.patch);
    case ModelKind::wide_resnet:
      setting.step = 1e-7;  // differences that go over hardly a kink
      setting.tolerance = 1e-5;
      setting.tolerance_of_bf16 = 0.2;  // eight numbers are normed by what they are themselves
      return see(config.model.wide_resnet, 1);
    case ModelKind::bert:
      setting.picks = true;
      setting.targets = config.data.masked;
      break;
    case ModelKind::transformer:
    case ModelKind::evolved_transformer:
      if (config.model.kind == ModelKind::evolved_transformer)
        setting.tolerance_of_bf16 = 0.25;  // a relu whose sum is near zero may open or close
      setting.sources = true;
      setting.source_rows = config.data.source_sequence;
      break;
    case ModelKind::subnet:
    case ModelKind::supernet:
      setting.sources = reads_pairs(config);
      setting.source_rows = config.data.source_sequence;
      setting.tolerance_of_bf16 = 0.25;
      break;
    case ModelKind::gpt:
      break;
  }
  setting.vocabulary = text_model(config).vocabulary;
  setting.rows = rows_of(config);
  return setting;
}

inline Config gpt2() { return small(ModelKind::gpt); }

inline Config llama() {
  Config config = small(ModelKind::gpt);
  gpt::Settings& m = config.model.gpt;
  m.positions = Positions::rotary;
  m.norm = ModelNorm::rms;
  m.mlp = MlpKind::swiglu;
  m.bias = false;
  m.tied = false;
  m.width = 32;
  m.heads = 8;
  m.key_value_heads = 4;
  return config;
}

/// What Qwen and Llama 3 add to Llama: biases of q, k and v, norms of q and k, heads of a width of their own,
/// pairs that turn slower.
inline Config qwen() {
  Config config = llama();
  gpt::Settings& m = config.model.gpt;
  m.width = 24;
  m.head_width = 6;
  m.qkv_bias = m.qk_norm = true;
  m.rotary_base = 100;
  m.rotary_scaling = RotaryScaling::llama3;
  m.rotary_factor = 4;
  m.rotary_context = 6;
  return config;
}

/// Two of the three tokens to be found are there at least in each sample.
inline Config bert() {
  Config config = small(ModelKind::bert);
  config.model.bert.mlp = MlpKind::gelu_exact;
  config.data.masked = 3;
  config.data.special.mask = 99;
  config.data.special.padding = 98;
  return config;
}

/// An encoder-decoder as Marian's, with one decoder layer more than the encoder has.
inline Config post_norm(Tables tables) {
  Config config = small(ModelKind::transformer);
  config.model.transformer = {};
  transformer::Settings& m = config.model.transformer;
  become_small(m);
  m.mlp = MlpKind::silu;
  m.context = 12;
  m.vocabulary = 100;
  m.layers = 1;
  m.decoder_layers = 2;
  m.tables = tables;
  config.data.source_sequence = 12;
  config.data.target_sequence = 8;
  return config;
}

/// An encoder-decoder as M2M100's, with one encoder layer more than the decoder has.
inline Config pre_norm() {
  Config config = post_norm(Tables::one);
  transformer::Settings& m = config.model.transformer;
  m.order = BlockOrder::pre_norm;
  m.positions = Places::closed_sinusoids;
  m.first_position = 2;
  m.layers = 2;
  m.decoder_layers = 1;
  return config;
}

/// An Evolved Transformer of one cell on either side, whose convolutions reach over all rows.
inline Config evolved() {
  Config config;
  config.model.kind = ModelKind::evolved_transformer;
  evolved_transformer::Settings& m = config.model.evolved_transformer;
  become_small(m);
  m.layers = m.decoder_layers = 1;
  m.context = 12;
  m.vocabulary = 100;
  config.data.source_sequence = 12;
  config.data.target_sequence = 8;
  config.train.label_smoothing = 0.05;
  return config;
}

/// A network of a space, with rows that its convolutions reach across.
inline Config of_space(const std::string& space, const std::vector<int>& choice) {
  Config config;
  choose(config, space, choice);
  SpaceSettings& m = config.model.subnet;
  m.width = 16;
  m.dropout = m.attention_dropout = 0.1;
  m.context = 12;
  m.vocabulary = 100;
  config.data.special.padding = 98;
  config.train.label_smoothing = 0.05;
  return config;
}
inline Config of_pairs() {
  Config config = of_space(
      "{name: pairs, encoder: {blocks: 3, candidates: [conv-3, identity, attention-4]}, "
      "decoder: {blocks: 3, candidates: [attention-4, separable-5, cross-4]}}",
      {0, 1, 2, 1, 2, 0});
  config.data.source_sequence = 12;
  config.data.target_sequence = 8;
  return config;
}
inline Config of_texts() {
  Config config =
      of_space("{name: texts, decoder: {blocks: 3, candidates: [attention-4, light-5-2, mlp-2]}}", {1, 0, 2});
  config.data.sequence = 8;
  return config;
}

/// Five rows, which no two shards divide. (Attention drops weights by their places among all queries, padded
/// ones too: with them, other shards would be another function.)
inline Config vision() {
  Config config;
  config.model.kind = ModelKind::vit;
  vit::Settings& m = config.model.vit;
  become_small(m);
  m.mlp = MlpKind::gelu_exact;
  m.channels = 2;
  m.picture_height = m.picture_width = 4;
  m.patch = 2;
  m.attention_dropout = 0;
  m.classes = 10;
  config.train.label_smoothing = 0.05;
  return config;
}

/// Three blocks, one for each group; pictures end as two pixels by two.
inline Config wide_resnet() {
  Config config;
  config.model.kind = ModelKind::wide_resnet;
  wide_resnet::Settings& m = config.model.wide_resnet;
  m.depth = 10;
  m.width = 1;
  m.channels = 2;
  m.picture_height = m.picture_width = 8;
  config.train.label_smoothing = 0.05;
  return config;
}

/// One of every kind and style, by name.
inline std::map<std::string, Config> all_small() {
  return {{"gpt2", gpt2()},         {"llama", llama()},
          {"qwen", qwen()},         {"transformer", small(ModelKind::transformer)},
          {"bert", bert()},         {"post_norm", post_norm(Tables::two)},
          {"pre_norm", pre_norm()}, {"vit", vision()},
          {"evolved", evolved()},   {"wide_resnet", wide_resnet()},
          {"of_pairs", of_pairs()}, {"of_texts", of_texts()}};
}

}  // namespace mindpipe::testing
