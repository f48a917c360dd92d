#include "program/clock/ports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "program/clock/clock.h"
#include "program/clock/port_waits.h"
#include "program/clock/simulate.h"

namespace mindpipe {
namespace {

using testing::ElementsAre;

constexpr TrafficClass sums = TrafficClass::gradients, messages = TrafficClass::pipeline;

/// Offers at given moments, and when each has arrived, by number.
struct Offered {
  std::int64_t at = 0;
  Ports::Transfer transfer;
};
std::vector<std::int64_t> arrivals(const std::vector<Offered>& offers,
                                   const std::optional<Unseen>& unseen = {},
                                   std::vector<Ports::Left>* all = nullptr) {
  Ports ports(unseen);
  std::vector<std::int64_t> arrived(offers.size(), -1);
  std::size_t next = 0;
  while (next < offers.size() || ports.next() != Ports::never) {
    const std::int64_t now = std::min(ports.next(), next < offers.size() ? offers[next].at : Ports::never);
    while (ports.next() == now) {
      const Ports::Left left = ports.leave();
      arrived[left.transfer.number] = left.arrived;
      if (all != nullptr) all->push_back(left);
    }
    for (; next < offers.size() && offers[next].at == now; ++next) {
      Ports::Transfer transfer = offers[next].transfer;
      transfer.number = static_cast<int>(next);
      ports.offer(transfer, now);
    }
    ports.serve(now);
  }
  return arrived;
}
Offered offer(std::int64_t at, TrafficClass traffic, int from, int to, std::int64_t takes,
              Level level = Level::node) {
  return {at, {traffic, level, from, to, takes}};
}

TEST(Ports, LetTheHighestClassLeaveFirstThenWhoCameFirstAndInterruptNobody) {
  EXPECT_THAT(arrivals({offer(0, sums, 0, 0, 100), offer(1, sums, 0, 0, 100), offer(2, messages, 0, 1, 7),
                        offer(3, messages, 0, 2, 5)}),
              ElementsAre(100, 212, 107, 112));
  EXPECT_THAT(arrivals({offer(0, messages, 0, 2, 7), offer(0, messages, 0, 1, 5)}), ElementsAre(12, 5))
      << "who came at one moment goes by receiver, in whatever order it was said";
}

TEST(Ports, ChargeATransferForWhatOthersTookOfItsInPortWhileItLeft) {
  EXPECT_THAT(arrivals({offer(0, sums, 1, 0, 100), offer(90, messages, 2, 0, 7)}), ElementsAre(100 + 7, 97))
      << "the message is there at once, and the part is late by what the message took";
  EXPECT_THAT(arrivals({offer(0, sums, 1, 0, 100), offer(98, messages, 2, 0, 7)}), ElementsAre(100, 107))
      << "the message begins while the part leaves, and ends behind it";
  EXPECT_THAT(arrivals({offer(0, sums, 1, 0, 100), offer(0, sums, 2, 0, 100), offer(0, sums, 3, 0, 100)}),
              ElementsAre(100, 200, 300));
  EXPECT_THAT(arrivals({offer(0, sums, 1, 0, 100), offer(0, sums, 2, 0, 100), offer(250, messages, 3, 0, 7)}),
              ElementsAre(100, 200, 257))
      << "a port that is free again has forgotten who met there";
}

TEST(Ports, OfOneLevelDoNotKnowThoseOfAnother) {
  EXPECT_THAT(arrivals({offer(0, sums, 0, 1, 100), offer(0, messages, 0, 1, 7, Level::net),
                        offer(0, messages, 0, 1, 9, Level::copies)}),
              ElementsAre(100, 7, 9));
}

TEST(Ports, SayWhenATransferLeavesIfNothingElseComes) {
  for (const bool sees_sums : {true, false}) {
    Ports ports(sees_sums ? std::nullopt : std::optional(Unseen{.by = messages, .what = sums}));
    const auto offers = [&](std::int64_t now, TrafficClass traffic, std::int64_t takes, int number) {
      ports.offer({traffic, Level::node, 0, 1, takes, number}, now);
    };
    const auto leaves = [&](TrafficClass traffic, int number) {
      return ports.expected(0, Level::node, traffic, number, 20);
    };
    offers(0, sums, 100, 1);
    ports.serve(0);
    offers(10, sums, 50, 2);
    offers(20, messages, 30, 3);
    offers(20, messages, 40, 4);
    offers(20, sums, 60, 5);
    EXPECT_EQ(leaves(sums, 1), 100);
    EXPECT_EQ(leaves(messages, 3), sees_sums ? 100 + 30 : 20 + 30) << "before the sum that came first";
    EXPECT_EQ(leaves(messages, 4), sees_sums ? 100 + 70 : 20 + 70);
    EXPECT_EQ(leaves(sums, 2), 100 + 70 + 50) << "sums find messages";
    EXPECT_EQ(leaves(sums, 5), 100 + 70 + 50 + 60);
  }
}

TEST(Ports, TakeNoLongerForAllThanTheirTransfersTake) {
  std::vector<Offered> offers;
  for (int k = 0; k < 200; ++k)
    offers.push_back(offer(0, k % 3 == 0 ? messages : sums, 1 + k % 5, 0, 1 + (k * 37) % 90));
  std::int64_t all = 0;
  for (const Offered& each : offers) all += each.transfer.takes;
  const std::vector<std::int64_t> arrived = arrivals(offers);
  EXPECT_LE(*std::max_element(arrived.begin(), arrived.end()), all);
}

TEST(Ports, HideAClassFromAnotherOneAlone) {
  const Unseen unseen{.by = messages, .what = sums};
  EXPECT_THAT(
      arrivals({offer(0, sums, 0, 1, 100), offer(10, messages, 0, 1, 7), offer(12, messages, 0, 1, 5)},
               unseen),
      ElementsAre(112, 17, 22))
      << "messages find each other and no sum, which finds them at its in port";
  EXPECT_THAT(arrivals({offer(0, messages, 0, 1, 50), offer(10, sums, 0, 1, 7)}, unseen), ElementsAre(50, 57))
      << "sums find messages";
  EXPECT_THAT(arrivals({offer(0, sums, 0, 1, 100), offer(10, messages, 0, 1, 200), offer(20, sums, 0, 1, 30)},
                       unseen),
              ElementsAre(100, 210, 240))
      << "a sum waits for the message that began while another one left";
  EXPECT_THAT(arrivals({offer(0, sums, 1, 0, 100), offer(98, messages, 2, 0, 7)}, unseen),
              ElementsAre(100, 105))
      << "nor at the in port";
  EXPECT_THAT(arrivals({offer(0, sums, 0, 1, 100), offer(1, TrafficClass::moves, 0, 1, 8),
                        offer(2, TrafficClass::tensor, 0, 1, 4)},
                       unseen),
              ElementsAre(100, 112, 104))
      << "others find all";
}

TEST(Ports, SayWhoWaitedForWhom) {
  std::vector<Ports::Left> all;
  arrivals({offer(0, sums, 0, 1, 100), offer(10, messages, 0, 1, 7), offer(12, messages, 0, 2, 5),
            offer(13, sums, 0, 1, 20)},
           {}, &all);
  TimesByPair times = waits_at_ports(all);
  EXPECT_EQ(at(times, messages, sums), 90 + 88);
  EXPECT_EQ(at(times, messages, messages), 7);
  EXPECT_EQ(at(times, sums, messages), 12);
  EXPECT_EQ(at(times, sums, sums), 87);
  all.clear();
  arrivals({offer(0, sums, 1, 0, 100), offer(90, messages, 2, 0, 7)}, {}, &all);
  std::reverse(all.begin(), all.end());
  times = waits_at_ports(all);
  EXPECT_EQ(at(times, sums, messages), 7);
  EXPECT_EQ(at(times, messages, sums), 0);
  EXPECT_EQ(waits_at_ports({}), TimesByPair{});
}

/// Lists of some ranks, with links of 10 ns latency and a nanosecond a byte, in the simulator.
class PortsOfLists : public ::testing::Test {
 protected:
  PortsOfLists() {
    network_.message = {10, 1000};
    network_.data = {10, 1000};
    network_.tensor = {10, 1000};
  }
  void pass(int rank, std::int64_t lasts, TensorSums sums = {}, std::vector<int> after = {}) {
    Action action = action_of(ActionKind::forward);
    action.sums = sums.calls;
    action.bytes = sums.bytes;
    add(rank, std::move(action), lasts, std::move(after));
  }
  void sum(int rank, std::int64_t bytes, std::vector<int> after = {}) {
    add(rank, action_of(ActionKind::reduce), 10 + bytes, std::move(after));
  }
  void message(int from, int to, std::int64_t bytes, std::vector<int> after = {}) {
    Action send = action_of(ActionKind::send), receive = action_of(ActionKind::receive);
    send.peer = to;
    receive.peer = from;
    send.payload = receive.payload = Payload::activation;
    add(from, std::move(send), 10 + bytes, std::move(after));
    add(to, std::move(receive), 10 + bytes, {});
  }
  Timeline run() { return simulate(program_, durations_, network_); }

  Program program_{{{}, {}, {}}};
  Durations durations_{{}, {}, {}};
  Network network_;

 private:
  void add(int rank, Action action, std::int64_t lasts, std::vector<int> after) {
    action.after = std::move(after);
    program_.ranks[rank].push_back(std::move(action));
    durations_[rank].push_back(lasts);
  }
};

TEST_F(PortsOfLists, TwoMessagesAndAPartAtOnePortGoByClassAndByTime) {
  pass(0, 5);             // 0
  sum(0, 100);            // 1
  sum(0, 100);            // 2
  message(0, 1, 7, {0});  // 3
  message(0, 2, 9, {0});  // 4
  sum(0, 100);            // 5: behind the first
  const Timeline line = run();
  EXPECT_EQ(line.spans[0][1].end, 110);
  EXPECT_EQ(line.spans[0][3].start, 5) << "it stands ready";
  EXPECT_EQ(line.spans[0][3].end, 117) << "behind the part that had begun, before the one that waits";
  EXPECT_EQ(line.spans[1][0].end, 117);
  EXPECT_EQ(line.spans[0][4].end, 126);
  EXPECT_EQ(line.spans[0][2].start, 0) << "two are under way";
  EXPECT_EQ(line.spans[0][2].end, 226);
  EXPECT_EQ(line.spans[0][5].start, 110) << "the first has ended";
  EXPECT_EQ(line.spans[0][5].end, 326) << "no latency is between two parts: it is not the port's";
}

TEST_F(PortsOfLists, APartIsLateByTheMessageThatItMeetsAtTheInPort) {
  sum(1, 100);
  pass(0, 90);
  message(0, 1, 7, {0});
  const Timeline line = run();
  EXPECT_EQ(line.spans[0][1].end, 90 + 7 + 10);
  EXPECT_EQ(line.spans[1][0].end, 100 + 7 + 10);
}

TEST_F(PortsOfLists, SumsOfAPassStandBetweenParts) {
  pass(0, 1000 + 40 + 400, {4, 400});
  for (int part = 0; part < 4; ++part) sum(0, 700);
  const Timeline line = run();
  // It computes 1000 ns; its sums come behind the part that leaves then, and before the third.
  EXPECT_EQ(line.spans[0][0].end, 1400 + 400 + 40);
  EXPECT_EQ(line.spans[0][1].end, 710);
  EXPECT_EQ(line.spans[0][2].end, 1410);
  EXPECT_EQ(line.spans[0][3].end, 1400 + 400 + 700 + 10);
  EXPECT_EQ(line.busy[0], 1840) << "a pass is busy while its sums wait";
  EXPECT_EQ(line.sums[0], 840);
}

TEST_F(PortsOfLists, LongSumsOfAPassGoInTurns) {
  pass(0, 1'000'000 + 40 + 400'000, {4, 400'000});  // two turns
  sum(0, 650'000);
  const Timeline line = run();
  EXPECT_EQ(line.spans[0][1].end, 650'010);
  // 500,000 of computing, the first turn behind the part, 20 of latency; then as if alone.
  EXPECT_EQ(line.spans[0][0].end, 650'000 + 200'000 + 20 + 500'000 + 200'000 + 20);
}

TEST_F(PortsOfLists, MessagesPassBetweenTheHalvesOfALongPart) {
  network_.calls.of_sum = 2;  // there, and back
  sum(0, 600'000);
  pass(0, 100'000);
  message(0, 1, 7, {1});
  Timeline line = run();
  EXPECT_EQ(line.spans[0][2].end, 300'000 + 7 + 10);
  EXPECT_EQ(line.spans[0][0].end, 600'000 + 7 + 10);
  network_.calls.of_sum = 1;
  line = run();
  EXPECT_EQ(line.spans[0][2].end, 600'000 + 7 + 10) << "one message is never interrupted";
}

TEST_F(PortsOfLists, ShortPartsGoAsOne) {
  network_.calls.of_sum = 2;
  sum(0, 200'000);
  pass(0, 50'000);
  message(0, 1, 7, {1});
  EXPECT_EQ(run().spans[0][2].end, 200'000 + 7 + 10) << "a plan does not count what takes so little";
}

TEST_F(PortsOfLists, ALongMessageIsThereWithTheLatestOfItsParts) {
  network_.calls.part_bytes = 300'000;
  message(0, 1, 600'000);
  program_.ranks[0][0].bytes = program_.ranks[1][0].bytes = 600'000;
  message(2, 1, 290'000);  // leaves for the same port while the first part does, as a sum does
  sum(1, 290'000);
  const Timeline line = run();
  EXPECT_EQ(line.spans[1][1].end, 290'000 + 10);
  EXPECT_EQ(line.spans[1][2].end, 290'000 + 290'000 + 10);
  EXPECT_EQ(line.spans[1][0].end, 300'000 + 290'000 + 290'000 + 10) << "the second part is there at 600,000";
}

TEST_F(PortsOfLists, OtherLevelsDoNotMeet) {
  network_.data.level = Level::net;
  sum(0, 100);
  message(0, 1, 7);
  pass(0, 1000 + 10 + 50, {1, 50});
  const Timeline line = run();
  EXPECT_EQ(line.spans[0][0].end, 110);
  EXPECT_EQ(line.spans[0][1].end, 17);
  EXPECT_EQ(line.spans[0][2].end, 1060);
}

}  // namespace
}  // namespace mindpipe
