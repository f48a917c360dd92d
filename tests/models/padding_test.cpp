#include "models/small_pairs.h"

namespace mindpipe::testing {
namespace {

constexpr DType dtypes[] = {DType::f64, DType::f32, DType::bf16};

/// One that has two shards, at first without padding in the first sample.
Subject with_two_shards(const Config& config) {
  Setting setting = setting_for(config);
  setting.shards = 2;
  return Subject(setting, model_of(config));
}

TEST(Padding, TokensBehindTheLengthOfASourceChangeNoLoss) {
  for (const Config& config : {with_longer_sources(), evolved(), of_pairs()}) {
    Subject subject = with_two_shards(config);
    auto* source = subject.field(field::source).as<std::int32_t>();
    const std::int32_t length = *subject.field(field::source_lengths).as<std::int32_t>();
    ASSERT_EQ(length, 5);
    EXPECT_FALSE(reads_padding_of_sources(subject))
        << "what attention reads through the length of the source";
    const double loss = subject.loss();
    source[length - 1] = (source[length - 1] + 7) % 100;
    EXPECT_NE(subject.loss(), loss) << "the last token that counts";
  }
}

TEST(Padding, ALengthIsThatOfItsOwnSample) {
  Subject subject = with_two_shards(with_longer_sources());
  auto* lengths = subject.field(field::source_lengths).as<std::int32_t>();
  const double loss = subject.loss();
  std::swap(lengths[0], lengths[1]);
  EXPECT_NE(subject.loss(), loss);
}

/// Losses of all targets, with the first tokens of each sample as they are in the other subject, as many as
/// both have.
std::vector<double> losses_with_the_tokens_of(const Subject& other, Subject& subject) {
  for (const std::string_view name : {field::source, field::tokens, field::targets}) {
    const Tensor from = other.field(name), to = subject.field(name);
    for (std::int64_t sample = 0; sample < to.shape[0]; ++sample)
      for (std::int64_t i = 0; i < to.shape[1]; ++i)
        if (i < from.shape[1]) to.at(sample).as<std::int32_t>()[i] = from.at(sample).as<std::int32_t>()[i];
        else if (name == field::targets) to.at(sample).as<std::int32_t>()[i] = -1;
  }
  subject.loss();
  return subject.losses();
}

TEST(Padding, OfSourcesAndTargetsChangesNoBitOfTheLossesThatCount) {
  for (const Config& given :
       {with_longer_sources(), post_norm(Tables::two), pre_norm(), evolved(), of_pairs()})
    for (DType dtype : dtypes)
      for (int shards : {1, 2, 4}) {
        Config config = given;
        SCOPED_TRACE(fmt::format("{} {}, {}, {} shards", given.model.kind, given.model.transformer.order,
                                 dtype, shards));
        text_model(config).attention_dropout = 0;  // which counts keys
        text_model(config).context = 24;
        Setting setting = setting_for(config);
        setting.dtype = dtype;
        setting.shards = shards;
        Subject before(setting, model_of(config));
        before.loss();
        const std::vector<double> wanted = before.losses();
        config.data.source_sequence = 24;
        config.data.target_sequence = 16;
        setting.source_rows = 24;
        setting.rows = 16;
        Subject padded(setting, model_of(config));
        const std::vector<double> got = losses_with_the_tokens_of(before, padded);
        ASSERT_EQ(wanted.size(), 2u * 8);
        ASSERT_EQ(got.size(), 2u * 16);
        for (std::size_t i = 0; i < got.size(); ++i)
          EXPECT_EQ(got[i], i % 16 < 8 ? wanted[i / 16 * 8 + i % 16] : 0) << i;
        EXPECT_NE(wanted.back(), 0);
      }
}

TEST(Causality, ATokenOfATargetChangesNothingBeforeIt) {
  for (const auto& [name, config] : all_small()) {
    if (!is_causal(config)) continue;
    for (DType dtype : dtypes)
      for (int shards : {1, 2}) {
        Setting setting = setting_for(config);
        setting.dtype = dtype;
        setting.shards = shards;
        Subject subject(setting, model_of(config));
        for (std::int64_t row = 0; row < 8; ++row) {
          SCOPED_TRACE(fmt::format("{}, {}, {} shards, token {}", name, dtype, shards, row));
          const std::set<std::size_t> changed = changed_by_a_token(subject, row);
          ASSERT_FALSE(changed.empty());
          EXPECT_GE(*changed.begin(), static_cast<std::size_t>(row));
          EXPECT_EQ(*changed.rbegin(), 7u) << "the last of its own sample";
        }
      }
  }
}

TEST(Causality, IsNotAskedOfABert) {
  Subject subject(setting_for(bert()), model_of(bert()));
  // Rows 1, 4 (whose target does not count) and 7 are to be found.
  EXPECT_EQ(changed_by_a_token(subject, 7), (std::set<std::size_t>{0, 2}));
}

/// Writes numbers into rows of padding that an activation has, and finds out whether a gradient comes back
/// to them.
class Scribble final : public Layer {
 public:
  Scribble(const LayerContext& context, std::int64_t rows, double number, bool& learned)
      : context_(context), rows_(rows), number_(number), learned_(learned) {}
  Boundary forward(Boundary in, Tape&) override {
    for (std::int64_t sample = 0; sample < in.activation.shape[0]; ++sample)
      context_.backend.fill({padding(in.activation, sample), number_});
    return in;
  }
  Boundary backward(Boundary dout, Tape&) override {
    for (std::int64_t sample = 0; sample < dout.activation.shape[0]; ++sample) {
      const Tensor rows = padding(dout.activation, sample);
      for (std::int64_t i = 0; i < rows.count(); ++i) learned_ = learned_ || read(rows, i) != 0;
    }
    return dout;
  }

 private:
  Tensor padding(const Tensor& x, std::int64_t sample) const {
    return x.at(sample).row_range(rows_, x.shape[1] - rows_);
  }
  LayerContext context_;
  std::int64_t rows_;
  double number_;
  bool& learned_;
};

/// A vit, of whose activations rows from `first` on are written over behind each block but the last.
Subject::Build scribbled_vit(Config config, std::int64_t first, double number, bool& learned) {
  config = resolve(config);
  return [=, &learned](Subject& s) {
    const auto model = make_model(config, s.context());
    for (auto& unit : model->units()) s.add(std::move(unit));
    for (Model::Block& block : model->blocks()) {
      s.add(std::move(block.layer));
      if (block.name != "head") s.add(std::make_unique<Scribble>(s.context(), first, number, learned));
    }
  };
}

TEST(Padding, WhatStandsInRowsPaddedUpForShardsChangesNoBit) {
  Config config = vision();
  config.model.vit.attention_dropout = 0.1;
  for (WhichBlocks recompute : {WhichBlocks::none, WhichBlocks::block})
    for (DType dtype : dtypes)
      for (int shards : {2, 4}) {
        SCOPED_TRACE(fmt::format("{}, {} shards, recompute {}", dtype, shards, recompute));
        config.train.recompute = recompute;
        Setting setting = setting_for(config);
        setting.dtype = dtype;
        setting.shards = shards;
        Subject plain(setting, model_of(config));
        const Whole wanted = plain.gradients();
        for (double number : {0.0, -3.5, 1e4}) {
          bool learned = false;
          Subject scribbled(setting, scribbled_vit(config, 5, number, learned));
          EXPECT_TRUE(scribbled.gradients() == wanted) << number;
          EXPECT_EQ(scribbled.loss_of_backward, plain.loss_of_backward) << number;
          EXPECT_FALSE(learned) << number;
        }
      }
}

TEST(Padding, ARowThatCountsIsNoPadding) {
  Setting setting = setting_for(vision());
  setting.shards = 2;
  bool learned = false;
  Subject plain(setting, model_of(vision())), scribbled(setting, scribbled_vit(vision(), 4, 1, learned));
  EXPECT_FALSE(scribbled.gradients() == plain.gradients());
  EXPECT_TRUE(learned);
}

}  // namespace
}  // namespace mindpipe::testing
