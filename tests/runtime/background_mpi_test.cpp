// ranks: 2, alone
#include <gtest/gtest.h>

#include "runtime/open_receive.h"
#include "runtime/ranks.h"

namespace mindpipe {
namespace {

// A rank that has its processor to itself is not told to give it away whenever it asks for messages, as the
// ranks of other tests are.
const int not_told_to_yield = setenv("OMPI_MCA_mpi_yield_when_idle", "0", 1);

/// Other work on the machine can spoil a stretch, so the best of several counts.
TEST(Background, AnOpenReceiveLeavesTheComputingRankNearlyAllOfItsProcessor) {
  const World world = all_ranks();
  for (int width : {32, 64, 128}) {
    OpenReceive receive(world, width);
    double best = 0;
    for (int attempt = 0; attempt < 5 && best < 0.97; ++attempt) {
      const ShareLeft share = receive.share_left(31);
      if (world.rank == 0) {
        std::printf("%s\n", to_string(share).c_str());
        EXPECT_GE(share.looks, 1) << "nobody looked after the message";
      }
      best = std::max(best, share.share);
      MPI_Bcast(&best, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    }
    EXPECT_GE(best, 0.97) << "width " << width;
  }
}

}  // namespace
}  // namespace mindpipe
