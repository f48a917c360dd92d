#include "runtime/generator.h"

#include <gtest/gtest.h>

#include <cmath>

#include "runtime/small_models.h"

namespace mindpipe {
namespace {

struct Case {
  const char* name;
  Config config;
};
std::vector<Case> cases() {
  std::vector<Case> all{{"gpt2", gpt2_style()}, {"llama", llama_style()}, {"llama bf16", llama_style()}};
  all[2].config.train.precision = Precision::bf16;
  // Weights that disagree with each other: with the usual small ones every logit is near zero.
  for (Case& c : all) {
    c.config.model.gpt.initial_deviation = 0.2;
    c.config = resolve(c.config);
  }
  return all;
}

std::vector<std::int32_t> some_tokens(const Config& config, std::int64_t count) {
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<std::int32_t>((i * i * 7 + 3 * i + 1) % config.model.gpt.vocabulary));
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
    const std::vector<std::int32_t> tokens = some_tokens(config, config.model.gpt.context);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const std::vector<float> step = cached.append({tokens[i]});
      whole.restart();
      const std::vector<float> again = whole.append({tokens.begin(), tokens.begin() + i + 1});
      ASSERT_EQ(step.size(), static_cast<std::size_t>(config.model.gpt.vocabulary));
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
    const std::int64_t context = config.model.gpt.context;
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
      while (text.size() < 5u * config.model.gpt.context) {
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
