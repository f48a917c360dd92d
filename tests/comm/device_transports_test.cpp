#include "comm/device_transports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/waiting.h"
#include "make_backend.h"

namespace mindpipe {
namespace {

using ::testing::HasSubstr;

std::vector<Seat> four_seats() {
  return {{"alder", "0000:1b:00.0", 22809},
          {"alder", "0000:43:00.0", 22809},
          {"birch", "0000:1b:00.0", 22809},
          {"birch", "0000:43:00.0", 22809}};
}

TEST(DeviceTransports, RanksWithAGpuEachAndOneNcclNeedNoMpiForTheirMessages) {
  EXPECT_EQ(obstacle(four_seats()), "");
}

TEST(DeviceTransports, WhatStandsInTheWayIsNamed) {
  auto seats = four_seats();
  seats[3].gpu = seats[2].gpu;
  EXPECT_EQ(obstacle(seats), "ranks 2 and 3 share GPU 0000:1b:00.0 of birch, which NCCL does not allow");
  seats = four_seats();
  seats[1].version = 0;
  EXPECT_EQ(obstacle(seats), "libnccl.so.2 cannot be opened on alder (rank 1)");
  seats = four_seats();
  for (Seat& seat : seats) seat.version = 22505;
  EXPECT_EQ(obstacle(seats), "NCCL on alder (rank 0) is 2.25.5, and 2.26.0 or newer is needed");
  seats = four_seats();
  seats[2].version = 22703;
  EXPECT_EQ(obstacle(seats), "NCCL is 2.28.9 on alder (rank 0), but 2.27.3 on birch (rank 2)");
  seats = four_seats();
  seats[0].gpu.clear();
  EXPECT_EQ(obstacle(seats), "rank 0 on alder computes on no GPU");
}

TEST(DeviceTransports, WhatIsReservedForNobodyIsSaid) {
  EXPECT_EQ(messages_by_mpi("birch is away", 0),
            "MPI through pinned memory (birch is away; with device.transport=mpi sums are cut for it)");
  EXPECT_EQ(
      messages_by_mpi("birch is away", 16),
      "MPI through pinned memory (birch is away; with device.transport=mpi sums are cut for it), which takes "
      "none of the 16 multiprocessors that device.reserved_multiprocessors keeps from products");
}

TEST(DeviceTransports, NobodyElseOrNoGpuNeedsNone) {
  Memory memory(Memory::Kind::host);
  const auto backend = make_cpu_backend(memory, 1, "auto");
  Waiting waiting;
  for (TransportKind kind : {TransportKind::automatic, TransportKind::nccl}) {
    const DeviceConfig wish{.transport = kind};
    EXPECT_EQ(device_transports({}, *backend, waiting, wish).transports, nullptr);
    EXPECT_EQ(device_transports({MPI_COMM_NULL, 0, 2}, *backend, waiting, wish).why, "");
  }
}

TEST(DeviceTransports, OnlySumsThatSomebodyWaitsForTakeWhatTheyWant) {
  using enum Transports::Use;
  EXPECT_EQ(most_multiprocessors(sums, 0), 0);
  EXPECT_EQ(most_multiprocessors(sums, 8), 0);
  EXPECT_EQ(most_multiprocessors(bulk, 0), 16);
  EXPECT_EQ(most_multiprocessors(bulk, 24), 24) << "what products leave alone";
  for (const Transports::Use brief : {scalars, channel}) {
    EXPECT_EQ(most_multiprocessors(brief, 0), 4);
    EXPECT_EQ(most_multiprocessors(brief, 24), 4);
    EXPECT_EQ(most_multiprocessors(brief, 2), 2) << "no more than products leave alone";
  }
}

TEST(DeviceTransports, TheLibraryThatIsOpenedIsTheOneThatWasBuiltWith) {
  if (nccl_found() == 0) GTEST_SKIP() << "libnccl.so.2 cannot be opened here";
  EXPECT_EQ(nccl_found() / 10000, nccl_built_with() / 10000);
  EXPECT_THAT(nccl_version_text(nccl_found()), HasSubstr("2."));
}

}  // namespace
}  // namespace mindpipe
