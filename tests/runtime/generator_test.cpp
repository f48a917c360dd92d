#include "runtime/generator.h"

#include <gtest/gtest.h>

#include <cmath>

#include "runtime/small_models.h"
#include "spaces.h"

namespace mindpipe {
namespace {

struct Case {
  const char* name;
  Config config;
};
/// Convolutions over three rows, over five, and over more than half a context.
Config of_space() {
  Config config = small_config();
  choose(config,
         "{name: texts, decoder: {blocks: [[conv-3], [separable-15], [attention-4], [light-5-4], [glu]]}}",
         std::vector<int>(5, 0));
  subnet::Settings& m = config.model.subnet;
  m.width = 48;
  m.context = 24;
  m.vocabulary = 101;
  config.data.special = {97, 98, 99, 100};
  return config;
}
std::vector<Case> cases() {
  std::vector<Case> all{{"gpt2", gpt2_style()},
                        {"llama", llama_style()},
                        {"llama bf16", llama_style()},
                        {"space", of_space()},
                        {"space bf16", of_space()}};
  all[2].config.train.precision = all[4].config.train.precision = Precision::bf16;
  // Weights that disagree with each other: with the usual small ones every logit is near zero.
  for (Case& c : all) {
    block_model(c.config).initial_deviation = 0.2;
    c.config = resolve(c.config);
  }
  return all;
}

std::vector<std::int32_t> some_tokens(const Config& config, std::int64_t count) {
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<std::int32_t>((i * i * 7 + 3 * i + 1) % text_model(config).vocabulary));
  return tokens;
}

double largest(const std::vector<float>& x) {
  double m = 0;
  for (float v : x) m = std::max(m, std::abs(static_cast<double>(v)));
  return m;
}
double farthest(const std::vector<float>& a, const std::vector<float>& b) {
  double m = 0;
  for (std::size_t i = 0; i < a.size(); ++i) m = std::max(m, std::abs(static_cast<double>(a[i]) - b[i]));
  return m;
}

std::int32_t greedy(const std::vector<float>& logits) {
  return static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

TEST(Generator, CachedKeysAndValuesAnswerLikeTheWholeTextFedAgain) {
  for (const auto& [name, config] : cases()) {
    Worker worker(config, {});
    Generator cached(config, worker), whole(config, worker);
    const std::vector<std::int32_t> tokens = some_tokens(config, text_model(config).context);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const std::vector<float> step = cached.append({tokens[i]});
      whole.restart();
      const std::vector<float> again = whole.append({tokens.begin(), tokens.begin() + i + 1});
      ASSERT_EQ(step.size(), static_cast<std::size_t>(text_model(config).vocabulary));
      EXPECT_GT(largest(again), 0.1) << name;
      EXPECT_LT(farthest(step, again),
                (config.train.precision == Precision::bf16 ? 2e-2 : 1e-5) * largest(again))
          << name << ", position " << i;
    }
  }
}

TEST(Generator, AContextIsFilledByPiecesOfAnyLength) {
  for (const auto& [name, config] : cases()) {
    Worker worker(config, {});
    const std::int64_t context = text_model(config).context;
    const std::vector<std::int32_t> tokens = some_tokens(config, context);
    Generator whole(config, worker);
    const std::vector<float> expected = whole.append(tokens);
    for (std::int64_t first = 1; first < context; ++first) {
      Generator pieces(config, worker);
      pieces.append({tokens.begin(), tokens.begin() + first});
      const std::vector<float> logits = pieces.append({tokens.begin() + first, tokens.end()});
      EXPECT_LT(farthest(logits, expected),
                (config.train.precision == Precision::bf16 ? 2e-2 : 1e-5) * largest(expected))
          << name << ", cut at " << first;
    }
  }
}

TEST(Generator, ARestartForgetsAllThatWasFed) {
  for (const auto& [name, config] : cases()) {
    Worker worker(config, {});
    Generator generator(config, worker);
    const std::vector<float> fresh = generator.append({1, 2, 3});
    for (int i = 0; i < 4; ++i) generator.append(some_tokens(config, 5));
    generator.restart();
    EXPECT_EQ(generator.position(), 0);
    EXPECT_EQ(generator.append({1, 2, 3}), fresh) << name;
  }
}

TEST(Generator, AGreedyTextFarBeyondTheContextComesOutTheSameTwice) {
  for (const auto& [name, config] : cases()) {
    std::vector<std::vector<std::int32_t>> texts;
    for (int threads : {1, 3}) {
      Config with = config;
      with.device.threads = threads;
      Worker worker(with, {});
      Generator generator(with, worker);
      std::vector<std::int32_t> text{1, 2, 3};
      std::vector<float> logits = generator.append(text);
      while (text.size() < 5u * text_model(config).context) {
        text.push_back(greedy(logits));
        logits = generator.follow(text);
      }
      texts.push_back(text);
    }
    EXPECT_EQ(texts[0], texts[1]) << name;
  }
}

}  // namespace
}  // namespace mindpipe
