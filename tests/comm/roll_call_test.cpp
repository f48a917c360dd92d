#include "comm/roll_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

namespace mindpipe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<std::string> where{" on alder", " on alder", " on birch", " on birch"};

TEST(RollCall, KeepsOneAnswerOfEachRankInTheOrderOfRanks) {
  const std::filesystem::path directory =
      std::filesystem::temp_directory_path() / ("mindpipe_roll_" + std::to_string(getpid()));
  const RollCall roll((directory / "log").string());
  EXPECT_TRUE(roll.answers().empty());
  EXPECT_TRUE(roll.answer({11, "rank 11 on birch is in no wait"}));
  EXPECT_TRUE(roll.answer({2, "rank 2 on alder has waited 1.0 s for nothing"}));
  EXPECT_TRUE(roll.answer({2, "rank 2 on alder has waited 2.0 s for tensor.sum"}));
  const auto answers = roll.answers();
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].rank, 2);
  EXPECT_EQ(answers[0].text, "rank 2 on alder has waited 2.0 s for tensor.sum");
  EXPECT_EQ(answers[1].rank, 11);
  std::filesystem::last_write_time(directory / "log/watchdog-2.txt",
                                   RollCall::Time::clock::now() - std::chrono::hours(1));
  const RollCall later((directory / "log").string(), RollCall::Time::clock::now() - std::chrono::minutes(1));
  ASSERT_EQ(later.answers().size(), 1u) << "what an earlier job's rank has answered does not count";
  EXPECT_EQ(later.answers()[0].rank, 11);
  later.forget_earlier();
  EXPECT_EQ(roll.answers().size(), 1u);
  std::filesystem::remove_all(directory);
  EXPECT_FALSE(RollCall("/proc/none/log").answer({0, "rank 0"}));
}

TEST(RollCall, NamesTheRankThatDoesNotAnswerAndQuotesOneThatWaitsForIt) {
  const std::string verdict = verdict_on(
      {{0, "rank 0 on alder has waited 4.9 s for gradient of micro-batch 1: nothing from rank 1 yet"},
       {1, "rank 1 on alder has waited 4.8 s for tensor.sum number 31: nothing from ranks 0, 2 and 3 yet"},
       {3, "rank 3 on birch has waited 4.7 s for activation of micro-batch 0: nothing from rank 1 yet"}},
      where);
  EXPECT_THAT(verdict, HasSubstr("rank 2 on birch does not answer"));
  EXPECT_THAT(verdict, HasSubstr("rank 1 on alder has waited 4.8 s for tensor.sum number 31"));
  EXPECT_THAT(verdict, Not(HasSubstr("rank 0 on alder")));
  EXPECT_THAT(verdict_on({{1, "rank 1 on alder has waited 1.0 s for x"}}, where),
              HasSubstr("rank 0 on alder, rank 2 on birch and rank 3 on birch do not answer"));
  EXPECT_THAT(verdict_on({{0, "rank 0 on a has waited 1.0 s for x"}}, std::vector<std::string>(9, " on a")),
              HasSubstr("rank 4 on a and 4 more do not answer"));
}

TEST(RollCall, BlamesOneThatWaitsForNobodyWhenAllAnswer) {
  const std::vector<Answer> answers{
      {0, "rank 0 on alder has waited 4.9 s for data.sum number 3: nothing from rank 1 yet"},
      {1, "rank 1 on alder is in no wait: it computes, reads or writes"}};
  const std::string verdict = verdict_on(answers, {" on alder", " on alder"});
  EXPECT_THAT(verdict, HasSubstr("rank 1 on alder is in no wait while others wait"));
  EXPECT_THAT(verdict, HasSubstr("rank 0 on alder has waited"));
  EXPECT_THAT(verdict_on({answers[0], {1, "rank 1 on alder has waited 3.0 s for x: nothing from rank 0 yet"}},
                         {" on alder", " on alder"}),
              HasSubstr("all 2 ranks wait for one another"));
}

TEST(RollCall, BlamesNobodyWhenAllAreAtWork) {
  EXPECT_THAT(verdict_on({{0, "rank 0 on alder is in no wait"}, {1, "rank 1 on alder is in no wait"}},
                         {" on alder", " on alder"}),
              HasSubstr("all 2 ranks are at work"));
}

TEST(Answer, KnowsWhomItWaitsFor) {
  const Answer answer{7,
                      "rank 7 on node12 has waited 4.8 s for tensor.sum number 31: nothing from ranks 3, 12 "
                      "and 5 yet; rank 9 has not "
                      "taken what is sent to it"};
  for (int rank : {3, 12, 5, 9}) EXPECT_TRUE(answer.waits_for(rank)) << rank;
  for (int rank : {7, 31, 1, 2, 4}) EXPECT_FALSE(answer.waits_for(rank)) << rank;
}

}  // namespace
}  // namespace mindpipe
