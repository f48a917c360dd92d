#pragma once
#include "layers/gradient_check.h"
#include "models/model.h"
#include "text_model.h"

/// Small models of every kind, whole, for checks of their gradients.
namespace mindpipe::testing {

inline Config small(ModelKind kind) {
  Config config;
  config.model.kind = kind;
  become_plain(config.model.transformer);
  TextSettings& m = text_model(config);
  m.layers = 2;
  m.width = 16;
  m.heads = 4;
  m.mlp_width = 24;
  m.context = 8;
  m.vocabulary = 100;
  m.mlp = MlpKind::gelu;
  m.dropout = 0.1;
  m.attention_dropout = 0.1;
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
  for (int i = 0; i < text_model(config).layers; ++i) {
    const std::string n = std::to_string(i);
    for (const char* unit : {"layers.", "encoder.", "decoder."})
      names.push_back(unit + n + ".attention.attention.k.bias");
    names.push_back("decoder." + n + ".cross.cross.k.bias");
  }
  return names;
}

inline Setting setting_for(const Config& config) {
  Setting setting;
  setting.vocabulary = text_model(config).vocabulary;
  setting.activation = false;
  setting.classifier = true;
  setting.step = 1e-4;  // deep functions bend
  setting.sources = config.model.kind == ModelKind::transformer;
  if (config.model.gpt.positions == Positions::learned) setting.without_gradient = key_biases(config);
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

}  // namespace mindpipe::testing
