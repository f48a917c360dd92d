// thorough without a GPU
#include "hardware.h"
#include "make_backend.h"
#include "models/small.h"

/// Losses and gradients of small models on a GPU, where there is one, beside the processor's.
namespace mindpipe::testing {
namespace {

class ModelsOnAGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (gpu_count() == 0) GTEST_SKIP() << "no GPU that this process may use: " << gpu_devices();
  }
};

Device gpu() {
  return {Memory::Kind::device, [](Memory& memory) { return make_cuda_backend(memory, 0); }};
}

/// Configuration with heads and sequences as long as cuDNN likes them, and no dropout, so that cuDNN is
/// asked.
Config larger(Config config) {
  BlockSettings& m = block_model(config);
  m.width = 128;
  m.heads = 2;
  m.mlp_width = 256;
  m.dropout = m.attention_dropout = 0;
  if (config.model.kind == ModelKind::vit) {
    config.model.vit.picture_height = config.model.vit.picture_width = 16;
    return config;
  }
  text_model(config).context = 64;
  text_model(config).vocabulary = 300;
  if (config.data.source_sequence > 0) config.data.source_sequence = config.data.target_sequence = 64;
  if (config.model.gpt.key_value_heads > 0) {
    m.heads = 4;
    m.width = 256;
    config.model.gpt.key_value_heads = 2;
  }
  return config;
}

void expect_the_processors(const std::string& name, const Config& config, DType dtype, double tolerance) {
  for (int shards : {1, 2}) {
    SCOPED_TRACE(
        fmt::format("{}, {}, width {}, {} shards", name, name_of(dtype), block_model(config).width, shards));
    Setting setting = setting_for(config);
    setting.dtype = dtype;
    setting.shards = shards;
    Subject here(setting, model_of(config));
    setting.device = gpu();
    Subject there(setting, model_of(config));
    expect_near(there.gradients(), here.gradients(), tolerance, "gradients", setting.without_gradient);
    EXPECT_NEAR(there.loss_of_backward, here.loss_of_backward, tolerance * std::abs(here.loss_of_backward));
    EXPECT_NEAR(there.loss(), there.loss_of_backward, 1e-6 * std::abs(here.loss_of_backward))
        << "forward and backward find the same losses";
  }
}

TEST_F(ModelsOnAGpu, HaveTheGradientsThatDifferencesFind) {
  Setting setting = setting_for(gpt2());
  setting.device = gpu();
  check_gradients(setting, model_of(gpt2()));
}

TEST_F(ModelsOnAGpu, HaveTheProcessorsGradientsInF64) {
  for (const auto& [name, config] : all_small()) expect_the_processors(name, config, DType::f64, 1e-10);
}

TEST_F(ModelsOnAGpu, HaveTheProcessorsGradientsInF32) {
  for (const auto& [name, config] : all_small())
    for (const Config& sized : {config, larger(config)}) expect_the_processors(name, sized, DType::f32, 1e-4);
}

TEST_F(ModelsOnAGpu, HaveTheProcessorsGradientsInBf16) {
  for (const auto& [name, config] : all_small())
    for (const Config& sized : {config, larger(config)})
      expect_the_processors(name, sized, DType::bf16, 8e-2);
}

TEST_F(ModelsOnAGpu, GiveEqualBitsEveryTime) {
  for (const auto& [name, config] : all_small())
    for (DType dtype : {DType::f32, DType::bf16}) {
      const Config sized = larger(config);
      Setting setting = setting_for(sized);
      setting.device = gpu();
      setting.dtype = dtype;
      setting.shards = 2;
      const Whole first = Subject(setting, model_of(sized)).gradients();
      EXPECT_TRUE(Subject(setting, model_of(sized)).gradients() == first) << name << ", " << name_of(dtype);
    }
}

}  // namespace
}  // namespace mindpipe::testing
