#include "comm/paper_ports.h"

#include <gtest/gtest.h>

#include <map>

#include "comm/port_records.h"
#include "lots.h"

namespace mindpipe {
namespace {

constexpr auto message = TrafficClass::pipeline, sum = TrafficClass::gradients;

TEST(PaperPorts, LetAMessagePassAPartThatWaitsButNoneThatLeaves) {
  PaperPorts ports;
  const auto first = ports.offer(Level::node, sum, 1, 100, 1000),
             second = ports.offer(Level::node, sum, 1, 100, 1000),
             small = ports.offer(Level::node, message, 2, 10, 1050);
  ports.serve(5000);  // the host comes by when all is over
  EXPECT_EQ(ports.take_begun(first), std::pair(std::int64_t{1000}, std::int64_t{1100}));
  EXPECT_EQ(ports.take_begun(small), std::pair(std::int64_t{1100}, std::int64_t{1110}));
  EXPECT_EQ(ports.take_begun(second), std::pair(std::int64_t{1110}, std::int64_t{1210}));
}

TEST(PaperPorts, OfTwoLevelsDoNotMeet) {
  PaperPorts ports;
  const auto near = ports.offer(Level::node, sum, 1, 100, 0), far = ports.offer(Level::net, sum, 1, 100, 0);
  ports.serve(0);
  EXPECT_EQ(ports.take_begun(near)->second, 100);
  EXPECT_EQ(ports.take_begun(far)->second, 100);
}

TEST(PaperPorts, TakeNothingInBeforeItHasLeft) {
  PaperPorts ports;
  const auto coming = ports.expect(Level::node, message, 1, 100, 200);
  ports.serve(199);
  EXPECT_FALSE(ports.take_arrived(coming));
  ports.serve(200);
  EXPECT_EQ(ports.take_arrived(coming), 200);
  EXPECT_FALSE(ports.take_arrived(coming)) << "it is said once";
}

/// A part of 100 leaves from 0 to 100; a message of 10 meets it at the in port.
TEST(PaperPorts, AreLateByNoMoreThanOthersTookMeanwhile) {
  PaperPorts ports;
  const auto part = ports.expect(Level::node, sum, 1, 0, 100),
             small = ports.expect(Level::node, message, 2, 85, 95),
             next = ports.expect(Level::node, sum, 2, 95, 195);
  ports.serve(1000);
  EXPECT_EQ(ports.take_arrived(small), 95);
  EXPECT_EQ(ports.take_arrived(part), 110) << "it made room for a message of 10";
  EXPECT_EQ(ports.take_arrived(next), 210) << "of the first part all left meanwhile; the port is free at 110";
}

TEST(PaperPorts, WhatTakesNoTimeWaitsForNobody) {
  PaperPorts ports;
  ports.offer(Level::node, sum, 1, 100, 0);
  ports.serve(0);
  const auto free = ports.offer(Level::node, sum, 1, 0, 50);
  EXPECT_EQ(ports.take_begun(free), std::pair(std::int64_t{50}, std::int64_t{50}));
  const auto coming = ports.expect(Level::node, sum, 1, 50, 50);
  EXPECT_EQ(ports.take_arrived(coming), 50);
}

TEST(PaperPorts, ALateOfferCameBehindWhatHasBegun) {
  PaperPorts ports;
  const auto part = ports.offer(Level::node, sum, 1, 100, 1000);
  ports.serve(1000);
  const auto late = ports.offer(Level::node, message, 1, 10, 900);
  ports.keep_record();
  ports.serve(1200);
  EXPECT_EQ(ports.take_begun(part)->first, 1000);
  EXPECT_EQ(ports.take_begun(late)->first, 1100);
  EXPECT_EQ(ports.out_record().front().said, 900);
  EXPECT_EQ(ports.out_record().front().offered, 1001);
}

TEST(PaperPorts, ALateOfferLeavesWhereThePortStoodIdle) {
  PaperPorts ports;
  ports.keep_record();
  const auto first = ports.offer(Level::node, sum, 1, 100, 1000),
             last = ports.offer(Level::node, sum, 1, 100, 2000);
  ports.serve(2000);
  const auto fits = ports.offer(Level::node, message, 1, 500, 1050),
             too_long = ports.offer(Level::node, message, 1, 500, 1050);
  ports.serve(3000);
  EXPECT_EQ(ports.take_begun(first)->second, 1100);
  EXPECT_EQ(ports.take_begun(fits), std::pair(std::int64_t{1100}, std::int64_t{1600}));
  EXPECT_EQ(ports.take_begun(last)->first, 2000);
  EXPECT_EQ(ports.take_begun(too_long)->first, 2100);
  expect_leaves_by_rule(ports.out_record());
}

/// The times of random offers and arrivals where the host looks at these moments.
std::map<PaperPorts::Number, std::int64_t> times_where_looked(int seed, std::int64_t rarely) {
  PaperPorts ports;
  ports.keep_record();
  Lots lots("ports", seed);
  std::vector<PaperPorts::Number> leave, arrive;
  std::int64_t now = 0, sender = 0;
  for (int i = 0; i < 200; ++i) {
    now += lots.below(300);
    const auto traffic = lots.below(2) == 0 ? message : sum;
    const std::int64_t takes = 1 + (traffic == message ? lots.below(20) : lots.below(400));
    // All is offered for a time that the host has not looked at.
    const std::int64_t offered = (now / rarely + 1) * rarely;
    leave.push_back(ports.offer(lots.below(3) == 0 ? Level::net : Level::node, traffic,
                                static_cast<int>(lots.below(3)), takes, offered));
    sender = std::max(sender, offered);
    arrive.push_back(
        ports.expect(Level::node, traffic, static_cast<int>(lots.below(3)), sender, sender + takes));
    sender += takes;
    if (lots.below(2) == 0) ports.serve((now / rarely) * rarely);
  }
  ports.serve(1 << 30);
  expect_leaves_by_rule(ports.out_record());
  expect_arrives_by_rule(ports.in_record());
  std::map<PaperPorts::Number, std::int64_t> times;
  for (const auto number : leave) times[number] = ports.take_begun(number)->second;
  for (const auto number : arrive) times[number] = ports.take_arrived(number).value();
  EXPECT_EQ(times.size(), 400U);
  return times;
}

TEST(PaperPorts, KeepTheRuleEntryByEntryHoweverSeldomTheHostLooks) {
  for (int seed = 0; seed < 50; ++seed)
    for (const std::int64_t rarely : {1, 100, 5000}) times_where_looked(seed, rarely);
}

/// Offers are looked at as they come, or once when all is over.
TEST(PaperPorts, GoOnInTheirOwnTimeWhateverTheHostDoes) {
  for (int seed = 0; seed < 50; ++seed) {
    PaperPorts prompt, late;
    Lots lots("prompt", seed);
    std::vector<PaperPorts::Number> numbers;
    std::int64_t now = 0;
    for (int i = 0; i < 100; ++i) {
      now += lots.below(200);
      const auto traffic = lots.below(2) == 0 ? message : sum;
      const std::int64_t takes = 1 + lots.below(300);
      prompt.serve(now - 1);
      numbers.push_back(prompt.offer(Level::node, traffic, 0, takes, now));
      ASSERT_EQ(late.offer(Level::node, traffic, 0, takes, now), numbers.back());
    }
    prompt.serve(1 << 30);
    late.serve(1 << 30);
    for (const auto number : numbers) ASSERT_EQ(prompt.take_begun(number), late.take_begun(number)) << seed;
  }
}

}  // namespace
}  // namespace mindpipe
