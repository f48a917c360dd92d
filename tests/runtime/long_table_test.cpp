#include <gtest/gtest.h>

#include "runtime/parity_cases.h"
#include "runtime/plain_loop.h"

namespace mindpipe {
namespace {

TEST(Parity, ATableLongerThanAChunkOfStatisticsIsNoException) {
  Config config = tiny(Style::gpt2, 2, 2);
  text_model(config).vocabulary = 1031;
  config = resolve(config);
  EXPECT_EQ(difference(outcome_of(config, {}, 10), PlainLoop(config).run(10)), "");
}

}  // namespace
}  // namespace mindpipe
