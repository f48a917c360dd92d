// ranks: 1 4 8
#include "comm/process_grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/affinity.h"

namespace mindpipe {
namespace {

TEST(ProcessGrid, GroupsHoldTheRanksThatDifferInOneAxis) {
  int ranks = 1, rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int tensor = 1; tensor <= ranks; tensor *= 2)
    for (int data = 1; tensor * data <= ranks; data *= 2) {
      const ProcessGrid grid(MPI_COMM_WORLD, {tensor, data, 0, 1});
      EXPECT_EQ(grid.rank(), rank);
      EXPECT_EQ(num_ranks(grid.shape()), ranks);
      for (Axis axis : axes) {
        int size = 0, place = 0;
        MPI_Comm_size(grid.along(axis), &size);
        MPI_Comm_rank(grid.along(axis), &place);
        EXPECT_EQ(size, grid.shape()[axis]);
        EXPECT_EQ(place, grid.coord()[axis]);
        std::vector<int> members(static_cast<std::size_t>(size));
        MPI_Allgather(&rank, 1, MPI_INT, members.data(), 1, MPI_INT, grid.along(axis));
        for (int i = 0; i < size; ++i) {
          Coord expected = grid.coord();
          expected[axis] = i;
          EXPECT_EQ(members[i], rank_at(grid.shape(), expected)) << name_of(axis);
        }
      }
    }
}

TEST(ProcessGrid, EveryRankRefusesAGridThatDoesNotFit) {
  try {
    const ProcessGrid grid(MPI_COMM_WORLD, {3, 5, 7, 1});
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::bad_configuration);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("needs 105 ranks"));
  }
}

TEST(ProcessGrid, PlacesOfAllRanksAreKnownEverywhere) {
  int ranks = 1, rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const auto places = all_places(MPI_COMM_WORLD, place_of_this_rank(100 + rank));
  ASSERT_EQ(places.size(), static_cast<std::size_t>(ranks));
  for (int r = 0; r < ranks; ++r) EXPECT_EQ(places[r].threads, 100 + r);
  EXPECT_TRUE(is_crowded(places, rank));
  EXPECT_THAT(affinity_report(places),
              ::testing::HasSubstr(fmt::format("warning: rank {} on {} runs {} threads but may use", rank,
                                               host_name(), 100 + rank)));
}

TEST(Mpi, ErrorsBecomeSentences) {
  try {
    int value = 0;
    MPI_CHECK(MPI_Send(&value, 1, MPI_INT, 1'000'000, 0, MPI_COMM_WORLD));
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::peer_failed);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("MPI_Send failed: MPI_ERR_RANK"));
  }
  EXPECT_THAT(mpi_library(), ::testing::HasSubstr("Open MPI"));
}

}  // namespace
}  // namespace mindpipe
