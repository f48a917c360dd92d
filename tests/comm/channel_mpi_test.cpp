// ranks: 2 4
#include "comm/channel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace mindpipe {
namespace {

/// Byte `i` of message `number` of a channel.
std::uint8_t content(int from, int to, int payload, int number, std::size_t i) {
  return static_cast<std::uint8_t>(31 * from + 57 * to + 101 * payload + 13 * number + i * 7 + (i >> 12));
}

struct Message {
  int from, to, payload, number;
  TrafficClass kind;
  std::vector<std::uint8_t> bytes;
  Channels::Transfer transfer = -1;
  Tensor tensor() { return {bytes.data(), {static_cast<std::int64_t>(bytes.size())}, DType::u8}; }
};

struct ChannelTest : ::testing::Test {
  Waiting waiting;
  TrafficLedger ledger;
  int ranks = 1, rank = 0;
  ChannelTest() {
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    waiting.set_crowded(ranks > 2);
  }
  Channels channels(int of_lane = 0) { return Channels(MPI_COMM_WORLD, waiting, &ledger, {}, of_lane); }

  /// Begins all of this rank's messages in an order of its own that keeps each channel's, and waits in
  /// another.
  void exchange(std::vector<Message> messages, unsigned seed) {
    Channels channels = this->channels();
    std::mt19937 random(seed + static_cast<unsigned>(rank));
    std::stable_sort(messages.begin(), messages.end(), [](const Message& a, const Message& b) {
      return std::tie(a.from, a.to, a.payload) < std::tie(b.from, b.to, b.payload);
    });
    std::vector<std::vector<Message*>> streams;
    for (Message& m : messages) {
      if (m.from != rank && m.to != rank) continue;
      const bool fresh =
          streams.empty() || std::tie(streams.back()[0]->from, streams.back()[0]->to,
                                      streams.back()[0]->payload) != std::tie(m.from, m.to, m.payload);
      if (fresh) streams.emplace_back();
      streams.back().push_back(&m);
      if (m.from == rank)
        for (std::size_t i = 0; i < m.bytes.size(); ++i)
          m.bytes[i] = content(m.from, m.to, m.payload, m.number, i);
    }
    std::vector<std::size_t> next(streams.size()), order;
    for (std::size_t s = 0; s < streams.size(); ++s) order.insert(order.end(), streams[s].size(), s);
    std::shuffle(order.begin(), order.end(), random);
    std::vector<Message*> begun;
    for (std::size_t s : order) {
      Message& m = *streams[s][next[s]++];
      m.transfer = m.from == rank ? channels.send(m.to, m.payload, m.tensor(), m.kind)
                                  : channels.receive(m.from, m.payload, m.tensor());
      begun.push_back(&m);
    }
    std::shuffle(begun.begin(), begun.end(), random);
    for (Message* m : begun) channels.wait(m->transfer);
    EXPECT_EQ(channels.under_way(), 0u);
    for (Message* m : begun) {
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < m->bytes.size(); ++i)
        wrong += m->bytes[i] != content(m->from, m->to, m->payload, m->number, i);
      EXPECT_EQ(wrong, 0u) << "message " << m->number << " from " << m->from << " to " << m->to << " payload "
                           << m->payload << ", " << m->bytes.size() << " bytes";
    }
  }
};

TEST_F(ChannelTest, ManyMessagesInBothDirectionsKeepTheOrderOfTheirChannel) {
  std::vector<Message> messages;
  for (int from = 0; from < ranks; ++from)
    for (int to : {(from + 1) % ranks, (from + ranks - 1) % ranks})
      for (int payload = 0; payload < 3; ++payload)
        for (int number = 0; number < 40 && (ranks > 2 || to == (from + 1) % ranks || payload > 0);
             ++number) {
          if (ranks == 2 && std::any_of(messages.begin(), messages.end(), [&](const Message& m) {
                return m.from == from && m.to == to && m.payload == payload && m.number == number;
              }))
            continue;
          messages.push_back({from, to, payload, number, TrafficClass::pipeline,
                              std::vector<std::uint8_t>(static_cast<std::size_t>(number * number * 11))});
        }
  exchange(std::move(messages), 1);
}

TEST_F(ChannelTest, BulkAndSmallMessagesInterleaveInAnyOrder) {
  for (unsigned seed = 0; seed < 2; ++seed) {
    std::vector<Message> messages;
    std::mt19937 random(seed);
    for (int number = 0; number < 8; ++number)
      for (int from = 0; from < ranks; ++from) {
        const int to = (from + 1 + static_cast<int>(random() % static_cast<unsigned>(ranks - 1))) % ranks;
        const bool bulk = random() % 4 == 0;
        messages.push_back({from, to, bulk ? 3 : 0, number,
                            bulk ? TrafficClass::moves : TrafficClass::pipeline,
                            std::vector<std::uint8_t>(bulk ? most_part_bytes + random() % most_part_bytes
                                                           : random() % 70000)});
      }
    exchange(std::move(messages), seed);
  }
}

TEST_F(ChannelTest, NeighboursThatBothSendFirstDoNotDeadlock) {
  Channels channels = this->channels();
  const std::size_t size = 1 << 20;  // beyond what MPI buffers
  std::vector<std::uint8_t> out(size, static_cast<std::uint8_t>(rank)), in(size);
  const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
  const Tensor sent{out.data(), {static_cast<std::int64_t>(size)}, DType::u8},
      got{in.data(), {static_cast<std::int64_t>(size)}, DType::u8};
  const auto send = channels.send(right, 0, sent);
  const auto receive = channels.receive(left, 0, got);
  channels.wait(receive);
  channels.wait(send);
  EXPECT_EQ(in[size - 1], left);
}

TEST_F(ChannelTest, LongMessagesGoInPartsOfTheLengthThatAllAgreeOn) {
  for (const std::int64_t part : {least_part_bytes, std::int64_t{1'250'000}}) {
    Channels channels(MPI_COMM_WORLD, waiting, &ledger, {}, 0, part);
    std::vector<std::uint8_t> bytes(3'000'001);
    const Tensor tensor{bytes.data(), {static_cast<std::int64_t>(bytes.size())}, DType::u8};
    if (rank == 0) {
      for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i % 251);
      channels.wait(channels.send(1, 3, tensor, TrafficClass::moves));
    } else if (rank == 1) {
      channels.wait(channels.receive(0, 3, tensor));
      for (std::size_t i = 0; i < bytes.size(); ++i) ASSERT_EQ(bytes[i], i % 251) << i;
    }
  }
}

TEST_F(ChannelTest, TheLedgerCountsWhatWasSentByClass) {
  for (const int of_lane : {0, 1}) {
    ledger = {};
    Channels channels = this->channels(of_lane);
    std::vector<std::uint8_t> bytes(1000);
    const Tensor tensor{bytes.data(), {1000}, DType::u8};
    if (rank == 0) {
      channels.wait(channels.send(1, 0, tensor));
      channels.wait(channels.send(1, 0, tensor));
      channels.wait(channels.send(1, 3, tensor, TrafficClass::moves));
    } else if (rank == 1) {
      for (int payload : {0, 0, 3}) channels.wait(channels.receive(0, payload, tensor));
    }
    const Axis axis = of_lane == 1 ? Axis::supernet : Axis::pipeline;
    EXPECT_EQ(ledger.of(axis, TrafficClass::pipeline).bytes, rank == 0 ? 2000 : 0);
    EXPECT_EQ(ledger.of(axis, TrafficClass::pipeline).calls, rank == 0 ? 2 : 0);
    EXPECT_EQ(ledger.of(axis, TrafficClass::moves).bytes, rank == 0 ? 1000 : 0);
    EXPECT_EQ(ledger.total().bytes, rank == 0 ? 3000 : 0);
  }
}

TEST_F(ChannelTest, EndsThatDifferInSizeAreNoticed) {
  Channels channels = this->channels();
  std::vector<std::uint8_t> bytes(1000);
  const auto tensor = [&](std::int64_t n) { return Tensor{bytes.data(), {n}, DType::u8}; };
  if (rank == 0) channels.wait(channels.send(1, 0, tensor(500)));
  if (rank == 1) {
    try {
      channels.wait(channels.receive(0, 0, tensor(1000)));
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_NE(
          std::string(error.what()).find("payload 0 from rank 0 has 500 bytes where 1000 were expected"),
          std::string::npos)
          << error.what();
    }
  }
}

TEST_F(ChannelTest, NoBulkPartBeginsWhileAHigherClassIsOnItsWay) {
  TrafficGate gate;
  EXPECT_TRUE(gate.open_for(TrafficClass::gradients));
  gate.begin(TrafficClass::tensor);
  EXPECT_FALSE(gate.open_for(TrafficClass::gradients));
  EXPECT_TRUE(gate.open_for(TrafficClass::tensor));
  EXPECT_TRUE(gate.open_for(TrafficClass::scalars));
  std::this_thread::sleep_for(std::chrono::milliseconds(6));
  EXPECT_TRUE(gate.open_for(TrafficClass::gradients))
      << "a higher class that waits for a late peer does not use the link";
  gate.end(TrafficClass::tensor);
  gate.begin(TrafficClass::pipeline);
  EXPECT_FALSE(gate.open_for(TrafficClass::moves));
  gate.end(TrafficClass::pipeline);
  EXPECT_TRUE(gate.open_for(TrafficClass::moves));
}

TEST_F(ChannelTest, ASmallMessageOvertakesABulkOne) {
  Channels channels = this->channels();
  std::vector<std::uint8_t> large(6 * most_part_bytes), small(100);
  const Tensor bulk{large.data(), {static_cast<std::int64_t>(large.size())}, DType::u8},
      quick{small.data(), {100}, DType::u8};
  if (rank == 0) {
    const auto slow = channels.send(1, 3, bulk, TrafficClass::moves);
    const auto fast = channels.send(1, 0, quick);
    channels.wait(fast);
    channels.wait(slow);
  } else if (rank == 1) {
    const auto slow = channels.receive(0, 3, bulk);
    const auto fast = channels.receive(0, 0, quick);
    channels.wait(fast);
    EXPECT_FALSE(channels.done(slow)) << "24 MiB in parts, two of them ahead of the small message";
    channels.wait(slow);
  }
}

}  // namespace
}  // namespace mindpipe
