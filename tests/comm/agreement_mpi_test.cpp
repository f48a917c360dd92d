// ranks: 1 2 4
#include "comm/agreement.h"

#include <gtest/gtest.h>

namespace mindpipe {
namespace {

World ranks_that_agree() {
  World world{MPI_COMM_WORLD};
  MPI_Comm_rank(world.comm, &world.rank);
  MPI_Comm_size(world.comm, &world.size);
  return world;
}

Agreement::Numbers answer_of(Agreement& agreement) {
  return agreement.answer([] { return std::string("an answer"); });
}

TEST(Agreement, GivesTheLargestOfEachNumberInTheOrderOfQuestions) {
  const World world = ranks_that_agree();
  Waiting waiting;
  waiting.set_crowded(true);
  Agreement agreement(world, waiting);
  const auto rank = static_cast<std::uint64_t>(world.rank), last = static_cast<std::uint64_t>(world.size) - 1;
  EXPECT_FALSE(agreement.is_answered()) << "nothing was asked";
  agreement.ask({rank, ~rank, 7});
  for (std::uint64_t question = 0; question < 50; ++question) {
    agreement.ask({question == 20 && rank == last ? 1u : 0u, question, rank << 40});
    agreement.progress();
    const Agreement::Numbers got = answer_of(agreement);
    if (question == 0) {
      EXPECT_EQ(got, (Agreement::Numbers{last, ~std::uint64_t{0}, 7}));
    } else {
      EXPECT_EQ(got, (Agreement::Numbers{question == 21 ? 1u : 0u, question - 1, last << 40}));
    }
  }
  EXPECT_EQ(answer_of(agreement)[1], 49u);
  EXPECT_ANY_THROW(answer_of(agreement));
}

TEST(Agreement, NobodyWaitsForAnAnswerThatItHasNotAskedFor) {
  const World world = ranks_that_agree();
  Waiting waiting;
  waiting.set_crowded(true);
  Agreement agreement(world, waiting);
  if (world.rank == 0) agreement.ask({1, 0, 0});
  EXPECT_EQ(agreement.is_answered(), world.size == 1) << "others have not asked yet";
  MPI_Barrier(world.comm);  // the others come only now
  if (world.rank != 0) agreement.ask({0, 0, 0});
  waiting.until([&] { return agreement.is_answered(); }, [] { return std::string("all ranks"); });
  EXPECT_EQ(answer_of(agreement)[0], 1u);
  EXPECT_FALSE(agreement.is_answered()) << "it was taken";
}

}  // namespace
}  // namespace mindpipe
