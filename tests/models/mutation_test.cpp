#include "make_backend.h"
#include "models/small_pairs.h"
#include "wrong_backend.h"

// Mistakes that a layer could make, made by the device: each is noticed by the check that is there for it.
namespace mindpipe::testing {
namespace {

Device wrong(const Mistakes& mistakes) {
  return {Memory::Kind::host, [=](Memory& memory) -> std::unique_ptr<Backend> {
            return std::make_unique<WrongBackend>(make_cpu_backend(memory, 1, "auto"), mistakes);
          }};
}

/// The tensors whose gradients differences do not confirm.
std::set<std::string> wrong_gradients(const Config& config, const Mistakes& mistakes) {
  Setting setting = setting_for(config);
  setting.device = wrong(mistakes);
  setting.shards = 2;
  Subject subject(setting, model_of(config));
  std::set<std::string> names;
  for (const auto& [name, error] : errors_of(subject, subject.gradients()))
    if (!(error <= setting.tolerance)) names.insert(name);
  return names;
}

int count_of(const std::set<std::string>& names, const std::string& beginning) {
  return static_cast<int>(std::count_if(
      names.begin(), names.end(), [&](const std::string& name) { return name.starts_with(beginning); }));
}

TEST(ModelMutations, AMemorysGradientThatOneReaderDoesNotCarryOnIsNoticed) {
  const Config config = post_norm(Tables::three);
  int added = 0;
  Mistakes counting;
  counting.accumulate = [&](AccumulateOperands&) { return ++added > 0; };
  EXPECT_TRUE(wrong_gradients(config, counting).empty());
  ASSERT_EQ(added, 2) << "both layers of the decoder read the memory";
  for (int left_out : {0, 1}) {
    int number = 0;
    Mistakes mistakes;
    mistakes.accumulate = [&](AccumulateOperands&) { return number++ != left_out; };
    const std::set<std::string> names = wrong_gradients(config, mistakes);
    EXPECT_GT(count_of(names, "encoder."), 10) << "reader " << left_out;
    EXPECT_EQ(count_of(names, "decoder.") + count_of(names, "bridge.") + count_of(names, "head."), 0);
  }
}

TEST(ModelMutations, APickedRowThatIsPutBackOneOffIsNoticed) {
  EXPECT_TRUE(wrong_gradients(bert(), {}).empty());
  for (int off : {-1, 1}) {
    Mistakes mistakes;
    mistakes.put_rows = [&](PutRowsOperands& operands) {
      operands.first += off;
      return true;
    };
    const std::set<std::string> names = wrong_gradients(bert(), mistakes);
    EXPECT_GT(count_of(names, "layers."), 10);
    EXPECT_EQ(count_of(names, "head."), 0) << "rows are put back behind the head";
  }
}

TEST(ModelMutations, LengthsOfTheWrongSideAreNoticed) {
  const Config config = with_longer_sources();
  const std::vector<std::int32_t> lengths_of_targets{8, 8};
  const Tensor wrong_side{const_cast<std::int32_t*>(lengths_of_targets.data()), {2}, DType::i32};
  // The encoder's attention is not causal; that of the decoder to the source has other keys than queries.
  for (bool cross : {false, true}) {
    Mistakes mistakes;
    mistakes.attention = [&](AttentionParameters& parameters) {
      if (!parameters.causal && (parameters.queries != parameters.keys) == cross)
        parameters.key_lengths = wrong_side;
      return true;
    };
    for (DType dtype : {DType::f64, DType::f32, DType::bf16}) {
      Setting setting = setting_for(config);
      setting.dtype = dtype;
      Subject right(setting, model_of(config));
      setting.device = wrong(mistakes);
      Subject mistaken(setting, model_of(config));
      EXPECT_FALSE(reads_padding_of_sources(right)) << name_of(dtype);
      EXPECT_TRUE(reads_padding_of_sources(mistaken)) << name_of(dtype);
    }
  }
}

TEST(ModelMutations, ADecoderThatSeesWhatComesIsNoticed) {
  Mistakes mistakes;
  mistakes.attention = [](AttentionParameters& parameters) {
    parameters.causal = false;
    return true;
  };
  for (const Config& config : {gpt2(), post_norm(Tables::one)}) {
    Setting setting = setting_for(config);
    setting.device = wrong(mistakes);
    Subject subject(setting, model_of(config));
    EXPECT_LT(*changed_by_a_token(subject, 5).begin(), 5u);
  }
}

/// A branch clears the padding and its convolutions read none: only both mistakes at once show.
TEST(ModelMutations, AConvolutionThatSeesPaddingIsNoticed) {
  const std::vector<std::int32_t> whole{12, 12};
  const Tensor all_rows{const_cast<std::int32_t*>(whole.data()), {2}, DType::i32};
  for (int taps : {0, 3, 9}) {  // 0: none
    int convolutions = 0;
    Mistakes mistakes;
    mistakes.clear_padding = [&](ClearPaddingOperands& operands) {
      operands.lengths = all_rows;
      return true;
    };
    mistakes.convolution = [&](Reach& reach, Tensor& lengths) {
      if (reach.taps != taps) return;
      lengths = {};
      ++convolutions;
    };
    Setting setting = setting_for(evolved());
    setting.device = wrong(mistakes);
    Subject subject(setting, model_of(evolved()));
    EXPECT_EQ(reads_padding_of_sources(subject), taps > 0) << taps;
    EXPECT_EQ(convolutions, taps > 0 ? 2 : 0) << "one in each of two passes";
  }
}

TEST(ModelMutations, AConvolutionThatSeesWhatComesIsNoticed) {
  for (int wrong_one : {0, 1, 2}) {
    std::vector<int> taps;
    Mistakes mistakes;
    mistakes.convolution = [&](Reach& reach, Tensor&) {
      if (!reach.causal) return;
      if (static_cast<int>(taps.size()) % 3 == wrong_one) reach.causal = false;
      taps.push_back(reach.taps);
    };
    Setting setting = setting_for(evolved());
    setting.device = wrong(mistakes);
    Subject subject(setting, model_of(evolved()));
    EXPECT_LT(*changed_by_a_token(subject, 7).begin(), 7u) << "convolution " << wrong_one;
    EXPECT_EQ(taps, (std::vector<int>{11, 7, 7, 11, 7, 7})) << "two passes";
  }
}

}  // namespace
}  // namespace mindpipe::testing
