#include "layers/gradient_check.h"
#include "models/model.h"

namespace mindpipe::testing {
namespace {

Config small(const std::string& kind) {
  Config config;
  ModelConfig& m = config.model;
  m.kind = kind, m.layers = 2, m.width = 16, m.heads = 4, m.mlp_width = 24, m.context = 8, m.vocabulary = 100;
  m.dropout = 0.1, m.attention_dropout = 0.1;
  return config;
}

/// A whole model's blocks and units, from tokens to losses.
Subject::Build model_of(Config config) {
  config = resolve(config);
  return [=](Subject& s) {
    const auto model = make_model(config, s.context());
    for (auto& unit : model->units()) s.add(std::move(unit));
    for (Model::Block& block : model->blocks()) s.add(std::move(block.layer), block.memory_in);
  };
}

/// Tensors without a gradient: the biases of keys, which softmax does not feel where no rotation comes in between.
std::vector<std::string> key_biases(const Config& config) {
  std::vector<std::string> names;
  for (int i = 0; i < config.model.layers; ++i) {
    const std::string n = std::to_string(i);
    for (const char* unit : {"layers.", "encoder.", "decoder."}) names.push_back(unit + n + ".attention.attention.k.bias");
    names.push_back("decoder." + n + ".cross.cross.k.bias");
  }
  return names;
}

Setting setting_for(const Config& config) {
  Setting setting;
  setting.vocabulary = config.model.vocabulary;
  setting.activation = false, setting.classifier = true, setting.label_smoothing = 0.05;
  setting.step = 1e-4;  // deep functions bend
  setting.sources = config.model.kind == "translator";
  if (config.model.positions == "learned") setting.without_gradient = key_biases(config);
  return setting;
}

Config gpt2() { return small("gpt"); }

Config llama() {
  Config config = small("gpt");
  ModelConfig& m = config.model;
  m.positions = "rotary", m.norm = "rms", m.mlp = "swiglu", m.bias = false, m.tied = false, m.width = 32, m.heads = 8,
  m.key_value_heads = 4;
  return config;
}

TEST(ModelGradients, OfASmallGpt2) { check_gradients(setting_for(gpt2()), model_of(gpt2())); }

TEST(ModelGradients, OfASmallLlama) {
  Setting setting = setting_for(llama());
  setting.width = 32;
  check_gradients(setting, model_of(llama()));
}

TEST(ModelGradients, OfASmallTranslator) {
  Config config = small("translator");
  config.model.layers = 1;
  check_gradients(setting_for(config), model_of(config));
}

TEST(ModelGradients, DifferInRoundingOnlyBetweenShards) {
  for (Config config : {gpt2(), llama(), small("translator")}) {
    SCOPED_TRACE(config.model.kind);
    Setting setting = setting_for(config);
    setting.width = config.model.width;
    check_rounding(setting, model_of(config));
  }
}

TEST(Models, GiveEqualBitsWhenRecomputedOrPutOff) {
  for (Config config : {gpt2(), llama(), small("translator")})
    for (DType dtype : {DType::f32, DType::bf16})
      for (int shards : {1, 2}) {
        Setting setting = setting_for(config);
        setting.dtype = dtype, setting.shards = shards;
        const Whole plain = Subject(setting, model_of(config)).gradients();
        Config recomputed = config;
        recomputed.train.recompute = "block";
        EXPECT_TRUE(Subject(setting, model_of(recomputed)).gradients() == plain) << config.model.kind << " recomputed, " << name_of(dtype);
        setting.weight_gradients = Tape::WeightGradients::later;
        EXPECT_TRUE(Subject(setting, model_of(config)).gradients() == plain) << config.model.kind << " put off, " << name_of(dtype);
        EXPECT_TRUE(Subject(setting, model_of(recomputed)).gradients() == plain) << config.model.kind << " both, " << name_of(dtype);
      }
}

}  // namespace
}  // namespace mindpipe::testing
