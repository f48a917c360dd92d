#include <gtest/gtest.h>

#include "runtime/parity_cases.h"
#include "runtime/plain_loop.h"

namespace mindpipe {
namespace {

TEST(Parity, OneRankGivesTheBitsOfAPlainLoop) {
  for (Style style : {Style::gpt2, Style::llama, Style::translator})
    for (const char* precision : {"f32", "bf16"})
      for (int shards : {1, 2, 3, 4}) {
        Config config = tiny(style, shards, shards == 4 ? 2 : shards, 2);
        config.train.precision = precision;
        config = resolve(config);
        const Outcome plain = PlainLoop(config).run(4);
        EXPECT_EQ(difference(outcome_of(config, {}, 4), plain), "") << name_of(style) << " " << describe(config);
      }
}

TEST(Parity, ATableLongerThanAChunkOfStatisticsIsNoException) {
  Config config = tiny(Style::gpt2, 2, 2);
  config.model.vocabulary = 1031;
  config = resolve(config);
  EXPECT_EQ(difference(outcome_of(config, {}, 3), PlainLoop(config).run(3)), "");
}

TEST(Parity, AnotherSeedOrClipOrShardGivesOtherBits) {
  const Config config = resolve(tiny(Style::gpt2, 2, 2));
  const Outcome outcome = outcome_of(config, {}, 2);
  EXPECT_EQ(difference(outcome_of(config, {}, 2), outcome), "");
  Config seed = config, clip = config, shards = config;
  seed.seed = 12, clip.train.clip = 0.4, shards.reproducible.tensor = 1;
  for (const Config& other : {seed, clip, shards}) EXPECT_NE(outcome_of(resolve(other), {}, 2).state, outcome.state);
}

}  // namespace
}  // namespace mindpipe
