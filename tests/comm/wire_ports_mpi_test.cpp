// ranks: 2
#include <gtest/gtest.h>
#include <mpi.h>

#include <chrono>
#include <thread>

#include "comm/channel.h"
#include "comm/port_records.h"

namespace mindpipe {
namespace {

/// Two ranks with empty messages that pass ports: 1 byte a nanosecond, 10 us of latency.
struct WirePorts : ::testing::Test {
  static constexpr std::int64_t latency = 10'000;
  Waiting waiting;
  PaperPorts ports;
  int rank = 0;
  WirePorts() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    waiting.set_crowded(true);
    const Link link{latency, 1000, Level::node};
    ports.connect({link, link}, link);
    ports.keep_record();
  }
  void SetUp() override {
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 2) GTEST_SKIP() << "two ranks";
  }
  Channels channels(std::int64_t part_bytes = most_part_bytes) {
    Route route{Route::Kind::counted};
    route.ports = &ports;
    return {MPI_COMM_WORLD, waiting, nullptr, route, 0, part_bytes};
  }
  static Tensor bytes(std::int64_t count) { return {nullptr, {count}, DType::u8}; }
  void finish(Channels& channels) {
    waiting.until(
        [&] {
          channels.progress();
          ports.serve(now_ns());
          return channels.under_way() == 0;
        },
        [] { return std::string("messages"); });
    MPI_Barrier(MPI_COMM_WORLD);
  }
  /// A time that both ranks know, a little in the future: they share a clock.
  static std::int64_t common_time() {
    std::int64_t time = now_ns() + 5'000'000;
    MPI_Bcast(&time, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
    return time;
  }
};

TEST_F(WirePorts, AMessageLeavesWhenBothEndsAreThereAndEndsWhereItHasArrived) {
  for (const bool sender_first : {true, false}) {
    Channels channels = this->channels();
    const std::int64_t start = common_time(), mine = start + ((rank == 0) == sender_first ? 0 : 3'000'000);
    Channels::Transfer transfer = 0;
    {
      const PaperPorts::Begins begins(&ports, mine);
      transfer = rank == 0 ? channels.send(1, 0, bytes(1'000'000)) : channels.receive(0, 0, bytes(1'000'000));
    }
    finish(channels);
    EXPECT_EQ(channels.take_end(transfer), start + 3'000'000 + 1'000'000 + latency) << rank;
    EXPECT_GE(now_ns(), start + 4'000'000 + latency);
  }
}

/// Another rank's transfer streams into the receiver's port meanwhile.
TEST_F(WirePorts, AMoveEndsOnBothRanksWhenItHasArrivedOtherMessagesWhenTheyHaveLeft) {
  for (const TrafficClass kind : {TrafficClass::moves, TrafficClass::pipeline}) {
    Channels channels = this->channels();
    const std::int64_t start = common_time();
    if (rank == 1) ports.expect(Level::node, TrafficClass::gradients, 5, start, start + 900'000);
    Channels::Transfer transfer = 0;
    {
      const PaperPorts::Begins begins(&ports, start);
      transfer =
          rank == 0 ? channels.send(1, 0, bytes(1'000'000), kind) : channels.receive(0, 0, bytes(1'000'000));
    }
    finish(channels);
    const bool knows_arrival = rank == 1 || kind == TrafficClass::moves;
    EXPECT_EQ(channels.take_end(transfer), start + (knows_arrival ? 1'900'000 : 1'000'000) + latency) << rank;
  }
}

TEST_F(WirePorts, LatenessOfAHostDoesNotAddUp) {
  Channels channels = this->channels();
  const std::int64_t start = common_time();
  std::int64_t moment = start;
  for (int i = 0; i < 20; ++i) {
    Channels::Transfer transfer = 0;
    {
      const PaperPorts::Begins begins(&ports, moment);
      transfer = rank == 0 ? channels.send(1, 0, bytes(500'000)) : channels.receive(0, 0, bytes(500'000));
    }
    if (i % 4 == rank) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    finish(channels);
    moment = channels.take_end(transfer).value();
    EXPECT_EQ(moment, start + (i + 1) * (500'000 + latency)) << i;
  }
}

TEST_F(WirePorts, OfThreeThatStandReadyTheHigherClassLeavesFirst) {
  Channels channels = this->channels();
  const std::int64_t start = common_time();
  std::vector<Channels::Transfer> all;
  for (const auto& [payload, kind, size] : {std::tuple{3, TrafficClass::moves, 400'000},
                                            {4, TrafficClass::gradients, 300'000},
                                            {0, TrafficClass::pipeline, 20'000}}) {
    const PaperPorts::Begins begins(&ports, start);
    all.push_back(rank == 0 ? channels.send(1, payload, bytes(size), kind)
                            : channels.receive(0, payload, bytes(size)));
  }
  finish(channels);
  EXPECT_EQ(channels.take_end(all[2]), start + 20'000 + latency);
  EXPECT_EQ(channels.take_end(all[0]), start + 420'000 + latency);
  EXPECT_EQ(channels.take_end(all[1]), start + 720'000 + latency);
  expect_leaves_by_rule(ports.out_record());
  expect_arrives_by_rule(ports.in_record());
}

/// Whatever their bytes: here one for each nanosecond would be over at once.
TEST_F(WirePorts, MovesWithAPricePassInTurnsBetweenWhichMessagesLeave) {
  Channels channels = this->channels();
  const std::int64_t start = common_time();
  const auto begin = [&](int payload, TrafficClass kind, int size, std::int64_t moment,
                         std::optional<PaperPorts::Priced> price) {
    const PaperPorts::Begins begins(&ports, moment, price);
    return rank == 0 ? channels.send(1, payload, bytes(size), kind)
                     : channels.receive(0, payload, bytes(size));
  };
  const auto move = begin(3, TrafficClass::moves, 103, start, PaperPorts::Priced{1'000'000, 4}),
             message = begin(0, TrafficClass::pipeline, 20'000, start + 300'000, {});
  finish(channels);
  EXPECT_EQ(channels.take_end(message), start + 520'000 + latency);
  EXPECT_EQ(channels.take_end(move), start + 1'020'000 + latency);
  expect_leaves_by_rule(ports.out_record());
  expect_arrives_by_rule(ports.in_record());
}

TEST_F(WirePorts, LongMessagesPassInPartsThatAreAlike) {
  Channels channels = this->channels(least_part_bytes);
  const std::int64_t start = common_time(), size = 4 * least_part_bytes + least_part_bytes / 4;
  std::vector<Channels::Transfer> both;
  for (const int payload : {0, 1}) {
    const PaperPorts::Begins begins(&ports, start + 100'000 * payload);
    both.push_back(rank == 0 ? channels.send(1, payload, bytes(size))
                             : channels.receive(0, payload, bytes(size)));
  }
  finish(channels);
  EXPECT_EQ(channels.take_end(both[0]), start + size + latency) << "who came first leaves first";
  EXPECT_EQ(channels.take_end(both[1]), start + 2 * size + latency);
  const std::vector<PaperPorts::Passed>& record = rank == 0 ? ports.out_record() : ports.in_record();
  ASSERT_EQ(record.size(), 10U);
  for (int part = 0; part < 5; ++part) EXPECT_NEAR(record[part].takes, size / 5, 5 * 64) << part;
}

}  // namespace
}  // namespace mindpipe
