// ranks: 2 4
// undisturbed: messages are timed
#include "comm/link_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/text_of_rank_0.h"

namespace mindpipe {
namespace {

using testing::ElementsAre;

World world() {
  World all{MPI_COMM_WORLD};
  MPI_Comm_rank(all.comm, &all.rank);
  MPI_Comm_size(all.comm, &all.size);
  return all;
}

TEST(LinkTimes, PairsNeighboursOfANodeAndEqualPlacesOfTwoNodes) {
  const LinkPartners even = link_partners({0, 0, 1, 1});
  EXPECT_THAT(even.within, ElementsAre(1, 0, 3, 2));
  EXPECT_THAT(even.between, ElementsAre(2, 3, 0, 1));
  const LinkPartners uneven = link_partners({0, 1, 0, 1, 2, 0});
  EXPECT_THAT(uneven.within, ElementsAre(2, 3, 0, 1, -1, -1));
  EXPECT_THAT(uneven.between, ElementsAre(1, 0, 3, 2, -1, -1)) << "three nodes: the last one is alone";
}

TEST(LinkTimes, KeepTheRateOfALongMessageWhereTheShortOneWasHeldUp) {
  const LinkTimes known = link_times_of({1000, 1e-3}, {101000, 2e-3});
  EXPECT_DOUBLE_EQ(known.latency, 1e-3);
  EXPECT_DOUBLE_EQ(known.rate, 1e8);
  const LinkTimes held_up = link_times_of({1000, 5e-3}, {100000, 2e-3});
  EXPECT_EQ(held_up.latency, 0) << "not known";
  EXPECT_DOUBLE_EQ(held_up.rate, 5e7);
}

TEST(LinkTimes, AreMeasuredWithinANodeAndBetweenTwo) {
  std::vector<int> nodes(world().size, 0);  // one node; then two halves that are taken for two
  NodeLinkTimes one = time_links(world(), nodes);
  const auto all_know = [&] { return !any_rank(world(), one.within.rate > 0 && one.within.latency == 0); };
  for (int attempt = 0; attempt < 9 && !all_know(); ++attempt) one = time_links(world(), nodes);
  EXPECT_TRUE(all_know()) << "other processes held up every short message";
  EXPECT_GT(one.within.rate, 1e6);
  EXPECT_EQ(one.between.rate, 0);
  for (int rank = world().size / 2; rank < world().size; ++rank) nodes[rank] = 1;
  const NodeLinkTimes two = time_links(world(), nodes);
  EXPECT_GT(two.between.rate, 1e6);
  EXPECT_EQ(two.within.rate > 0, world().size == 4);
}

}  // namespace
}  // namespace mindpipe
