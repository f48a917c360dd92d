#include "make_backend.h"
#include "models/small.h"

#include "late_backend.h"

namespace mindpipe::testing {
namespace {

TEST(ModelGradients, OfASmallGpt2) { check_gradients(setting_for(gpt2()), model_of(gpt2())); }

TEST(ModelGradients, OfASmallLlama) { check_gradients(setting_for(llama()), model_of(llama())); }

TEST(ModelGradients, OfASmallQwen) { check_gradients(setting_for(qwen()), model_of(qwen())); }

TEST(ModelGradients, OfASmallTransformer) {
  Config config = small(ModelKind::transformer);
  config.model.transformer.layers = 1;
  check_gradients(setting_for(config), model_of(config));
}

TEST(ModelGradients, OfASmallBert) { check_gradients(setting_for(bert()), model_of(bert())); }

TEST(ModelGradients, OfSmallPostNormTransformersWithOneTwoAndThreeTables) {
  for (Tables tables : {Tables::one, Tables::two, Tables::three}) {
    SCOPED_TRACE(std::string(name_of(tables)));
    check_gradients(setting_for(post_norm(tables)), model_of(post_norm(tables)));
  }
}

TEST(ModelGradients, OfASmallPreNormTransformerWithClosedSinusoids) {
  check_gradients(setting_for(pre_norm()), model_of(pre_norm()));
}

/// Few rows, since its relus have kinks that differences may go over.
TEST(ModelGradients, OfASmallEvolvedTransformer) {
  Config config = evolved();
  config.data.source_sequence = 8;
  config.data.target_sequence = 4;
  Setting setting = setting_for(config);
  setting.step = 3e-5;
  check_gradients(setting, model_of(config));
}

TEST(ModelGradients, OfSmallNetworksOfASpace) {
  for (Config config : {of_pairs(), of_texts()}) {
    if (reads_pairs(config)) {
      config.data.source_sequence = 8;
      config.data.target_sequence = 4;
    }
    Setting setting = setting_for(config);
    setting.step = 3e-5;
    check_gradients(setting, model_of(config));
  }
}

TEST(ModelGradients, OfASmallVitWithPaddedRows) {
  check_gradients(setting_for(vision()), model_of(vision()));
}

TEST(ModelGradients, OfASmallVitWithFourRowsAndAttentionThatDrops) {
  Config config = vision();
  config.model.vit.picture_height = 2;
  config.model.vit.picture_width = 6;
  config.model.vit.attention_dropout = 0.1;
  check_gradients(setting_for(config), model_of(config));
}

TEST(ModelGradients, OfASmallWideResnet) {
  check_gradients(setting_for(wide_resnet()), model_of(wide_resnet()));
}

TEST(ModelGradients, DifferInRoundingOnlyBetweenShards) {
  for (const auto& [name, config] : all_small()) {
    SCOPED_TRACE(name);
    check_rounding(setting_for(config), model_of(config));
  }
}

TEST(Models, GiveEqualBitsWhenRecomputedOrPutOff) {
  for (const auto& [name, config] : all_small())
    for (DType dtype : {DType::f32, DType::bf16})
      for (int shards : {1, 2}) {
        Setting setting = setting_for(config);
        setting.dtype = dtype;
        setting.shards = shards;
        const Whole plain = Subject(setting, model_of(config)).gradients();
        Config recomputed = config;
        recomputed.train.recompute = WhichBlocks::block;
        EXPECT_TRUE(Subject(setting, model_of(recomputed)).gradients() == plain)
            << name << " recomputed, " << name_of(dtype);
        setting.weight_gradients = Tape::WeightGradients::later;
        EXPECT_TRUE(Subject(setting, model_of(config)).gradients() == plain)
            << name << " put off, " << name_of(dtype);
        EXPECT_TRUE(Subject(setting, model_of(recomputed)).gradients() == plain)
            << name << " both, " << name_of(dtype);
      }
}

TEST(Models, HaveTheirBitsOnADeviceThatIsLate) {
  const Device late{Memory::Kind::host, [](Memory& memory) -> std::unique_ptr<Backend> {
                      return std::make_unique<LateBackend>(make_cpu_backend(memory, 1, "auto"), 0);
                    }};
  for (const auto& [name, config] : all_small())
    for (DType dtype : {DType::f32, DType::bf16}) {
      Setting setting = setting_for(config);
      setting.dtype = dtype;
      setting.shards = 2;
      Subject now(setting, model_of(config));
      setting.device = late;
      Subject later(setting, model_of(config));
      EXPECT_TRUE(now.gradients() == later.gradients()) << name << ", " << name_of(dtype);
      EXPECT_EQ(now.loss_of_backward, later.loss_of_backward);
      EXPECT_EQ(now.loss(), later.loss());
    }
}

}  // namespace
}  // namespace mindpipe::testing
