#include "make_backend.h"
#include "models/small.h"

#include "late_backend.h"

namespace mindpipe::testing {
namespace {

TEST(ModelGradients, OfASmallGpt2) { check_gradients(setting_for(gpt2()), model_of(gpt2())); }

TEST(ModelGradients, OfASmallLlama) {
  Setting setting = setting_for(llama());
  setting.width = 32;
  check_gradients(setting, model_of(llama()));
}

TEST(ModelGradients, OfASmallTransformer) {
  Config config = small(ModelKind::transformer);
  config.model.transformer.layers = 1;
  check_gradients(setting_for(config), model_of(config));
}

TEST(ModelGradients, DifferInRoundingOnlyBetweenShards) {
  for (Config config : {gpt2(), llama(), small(ModelKind::transformer)}) {
    SCOPED_TRACE(std::string(name_of(config.model.kind)));
    Setting setting = setting_for(config);
    setting.width = text_model(config).width;
    check_rounding(setting, model_of(config));
  }
}

TEST(Models, GiveEqualBitsWhenRecomputedOrPutOff) {
  for (Config config : {gpt2(), llama(), small(ModelKind::transformer)})
    for (DType dtype : {DType::f32, DType::bf16})
      for (int shards : {1, 2}) {
        Setting setting = setting_for(config);
        setting.dtype = dtype;
        setting.shards = shards;
        const Whole plain = Subject(setting, model_of(config)).gradients();
        Config recomputed = config;
        recomputed.train.recompute = RecomputeKind::block;
        EXPECT_TRUE(Subject(setting, model_of(recomputed)).gradients() == plain)
            << name_of(config.model.kind) << " recomputed, " << name_of(dtype);
        setting.weight_gradients = Tape::WeightGradients::later;
        EXPECT_TRUE(Subject(setting, model_of(config)).gradients() == plain)
            << name_of(config.model.kind) << " put off, " << name_of(dtype);
        EXPECT_TRUE(Subject(setting, model_of(recomputed)).gradients() == plain)
            << name_of(config.model.kind) << " both, " << name_of(dtype);
      }
}

TEST(Models, HaveTheirBitsOnADeviceThatIsLate) {
  const Device late{Memory::Kind::host, [](Memory& memory) -> std::unique_ptr<Backend> {
                      return std::make_unique<LateBackend>(make_cpu_backend(memory, 1, "auto"), 0);
                    }};
  for (const Config& config : {gpt2(), llama(), small(ModelKind::transformer)})
    for (DType dtype : {DType::f32, DType::bf16}) {
      Setting setting = setting_for(config);
      setting.dtype = dtype;
      setting.shards = 2;
      setting.width = text_model(config).width;
      Subject now(setting, model_of(config));
      setting.device = late;
      Subject later(setting, model_of(config));
      EXPECT_TRUE(now.gradients() == later.gradients())
          << name_of(config.model.kind) << ", " << name_of(dtype);
      EXPECT_EQ(now.loss_of_backward, later.loss_of_backward);
      EXPECT_EQ(now.loss(), later.loss());
    }
}

}  // namespace
}  // namespace mindpipe::testing
