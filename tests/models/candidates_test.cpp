#include "models/candidates.h"

#include "models/small.h"
#include "supernet/subnet.h"

// Each word of a space, as the only block of an encoder or a decoder.
namespace mindpipe::testing {
namespace {

/// A space of one encoder's block and one decoder's of the same word, or of a decoder's alone.
Config with_word(const std::string& word) {
  const bool encoder_too = !word.starts_with("cross");
  return of_space(fmt::format("{{name: one, encoder: {{blocks: 1, candidates: [{}]}}, decoder: {{blocks: 1, "
                              "candidates: [{}]}}}}",
                              encoder_too ? word : "glu", word),
                  {0, 0});
}

Setting setting_of(const std::string& word) {
  Setting setting;
  setting.sources = true;  // of whose rows five count, and three
  setting.step = 1e-5;     // relus have kinks
  setting.memory = word.starts_with("cross");
  return setting;
}

Subject::Build block_of(const Config& config, int block) {
  return [=](Subject& s) {
    const Candidates candidates(config.model.subnet, s.context());
    s.add(candidates.make(block, 0, &s.unit(candidate_name(block, 0))));
  };
}

const std::vector<std::string> words{"conv-1",    "conv-3",      "separable-3", "separable-11", "light-3-1",
                                     "light-7-4", "attention-4", "glu",         "mlp-2",        "cross-4"};
/// The blocks that may be a word: the encoder's and the decoder's.
std::vector<int> blocks_of(const std::string& word) {
  return word.starts_with("cross") ? std::vector<int>{1} : std::vector<int>{0, 1};
}

TEST(CandidateGradients, OfEveryWord) {
  for (const std::string& word : words)
    for (const int block : blocks_of(word)) {
      SCOPED_TRACE(fmt::format("{} of {}", word, block == 0 ? "an encoder" : "a decoder"));
      check_gradients(setting_of(word), block_of(with_word(word), block));
    }
}

TEST(CandidateGradients, DifferInRoundingOnlyBetweenShards) {
  for (const std::string& word : words)
    for (const int block : blocks_of(word)) {
      SCOPED_TRACE(fmt::format("{} of {}", word, block == 0 ? "an encoder" : "a decoder"));
      Setting setting = setting_of(word);
      setting.tolerance_of_bf16 = 0.15;  // a relu whose sum is near zero may open or close
      check_rounding(setting, block_of(with_word(word), block));
    }
}

/// The first row of the input whose numbers change no row of the output before `counted`; from there on none
/// does.
std::int64_t first_unseen_row(const std::string& word, int block, std::int64_t counted) {
  Setting setting = setting_of(word);
  setting.counted_rows = counted;
  setting.shards = 2;
  Subject subject(setting, block_of(with_word(word), block));
  const double loss = subject.loss();
  std::int64_t unseen = setting.rows;
  while (unseen > 0) {
    std::vector<double>& numbers = subject.values.at("input.activation");
    const std::vector<double> before = numbers;
    for (std::int64_t sample = 0; sample < setting.samples; ++sample)
      for (std::int64_t c = 0; c < setting.width; ++c)
        numbers[static_cast<std::size_t>((sample * setting.rows + unseen - 1) * setting.width + c)] *= -1.5;
    const bool seen = subject.loss() != loss;
    numbers = before;
    if (seen) break;
    --unseen;
  }
  return unseen;
}

TEST(Candidates, OfADecoderSeeNoLaterRow) {
  for (const std::string& word : words) EXPECT_EQ(first_unseen_row(word, 1, 3), 3) << word;
}

TEST(Candidates, OfAnEncoderSeeLaterRowsButNoPadding) {
  const std::map<std::string, std::int64_t> reach{{"conv-1", 3},      {"conv-3", 4},    {"separable-3", 4},
                                                  {"light-3-1", 4},   {"light-7-4", 5}, {"separable-11", 5},
                                                  {"attention-4", 5}, {"glu", 3},       {"mlp-2", 3}};
  for (const auto& [word, rows] : reach) EXPECT_EQ(first_unseen_row(word, 0, 3), rows) << word;
}

TEST(Candidates, ThatAreIdentityHaveNoUnitAndChangeNothing) {
  const Config config = with_word("identity");
  const Space& space = config.model.subnet.space;
  EXPECT_FALSE(has_parameters(space.candidates(0)[0]));
  Setting setting;
  Subject subject(
      setting, [&](Subject& s) { s.add(Candidates(config.model.subnet, s.context()).make(0, 0, nullptr)); });
  const Whole gradients = subject.gradients();
  ASSERT_EQ(gradients.size(), 1u);
  EXPECT_EQ(gradients.at("input.activation"),
            normals("loss.activation", setting.samples * setting.rows * setting.width, 1));
}

}  // namespace
}  // namespace mindpipe::testing
