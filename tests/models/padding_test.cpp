#include "models/small.h"

namespace mindpipe::testing {
namespace {

/// A transformer whose source has more rows than its target, at first without padding in the first sample.
Subject transformer_of_longer_sources() {
  Config config = small(ModelKind::transformer);
  config.model.transformer.context = 12;
  config.data.target_sequence = 8;
  config.data.source_sequence = 12;
  Setting setting = setting_for(config);
  setting.shards = 2;
  return Subject(setting, model_of(config));
}

TEST(Padding, TokensBehindTheLengthOfASourceChangeNoLoss) {
  Subject subject = transformer_of_longer_sources();
  auto* source = subject.field(field::source).as<std::int32_t>();
  const std::int32_t length = *subject.field(field::source_lengths).as<std::int32_t>();
  ASSERT_EQ(length, 5);
  const double loss = subject.loss();
  for (int i = length; i < 12; ++i) source[i] = (source[i] + 7) % 100;
  EXPECT_EQ(subject.loss(), loss) << "what attention reads through the length of the source";
  source[length - 1] = (source[length - 1] + 7) % 100;
  EXPECT_NE(subject.loss(), loss) << "the last token that counts";
}

TEST(Padding, ALengthIsThatOfItsOwnSample) {
  Subject subject = transformer_of_longer_sources();
  auto* lengths = subject.field(field::source_lengths).as<std::int32_t>();
  const double loss = subject.loss();
  std::swap(lengths[0], lengths[1]);
  EXPECT_NE(subject.loss(), loss);
}

}  // namespace
}  // namespace mindpipe::testing
