#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program/clock/transfer.h"
#include "program/make_program.h"
#include "program/sample_outline.h"

namespace mindpipe {
namespace {

using testing::ElementsAre;

constexpr std::int64_t mebibyte = 1 << 20;

/// Two updates; block 0 has 10 MiB of gradients, three parts, and half of that in values, two.
Outline with_a_large_block(Outline outline) {
  outline.data = 2;
  outline.sharded_optimizer = true;
  outline.units[0].gradients = 10 * mebibyte;
  outline.units[0].values = 5 * mebibyte;
  return outline;
}

std::vector<std::string> texts_of(const std::vector<Action>& list, ActionKind kind) {
  std::vector<std::string> texts;
  for (const Action& action : list)
    if (action.kind == kind) texts.push_back(to_string(action));
  return texts;
}

TEST(Parts, OfASumOrAGatherAreActionsOfTheirOwnWithTickets) {
  const Program program = make_program(with_a_large_block(equal_stages(1, 2, 1, {}, 2)), "1f1b").program;
  EXPECT_THAT(
      texts_of(program.ranks[0], ActionKind::reduce),
      ElementsAre("reduce unit 1 in block 1 over data", "reduce unit 0 in block 0 over data, part 1 of 3",
                  "reduce unit 0 in block 0 over data, part 2 of 3",
                  "reduce unit 0 in block 0 over data, part 3 of 3"));
  EXPECT_THAT(texts_of(program.ranks[0], ActionKind::gather),
              ElementsAre("gather unit 0 over data, part 1 of 2", "gather unit 0 over data, part 2 of 2",
                          "gather unit 1 over data"));
  std::int64_t ticket = -1;
  for (const Action& action : program.ranks[0])
    if (is_communication(action)) {
      EXPECT_GT(action.ticket, ticket);
      ticket = action.ticket;
    }
}

TEST(Parts, HaveTheVolumeOfTheWhole) {
  for (int data : {2, 3, 8}) {
    Outline outline = with_a_large_block(equal_stages(2, 2));
    outline.data = data;
    tie(outline, {0, 1}, 10 * mebibyte);
    std::int64_t reduced = 0, gathered = 0, sent = 0;
    const PlannedStep step = make_program(outline, "1f1b");
    for (const Action& action : step.program.ranks[0]) {
      if (action.kind == ActionKind::reduce) reduced += action.bytes;
      if (action.kind == ActionKind::gather) gathered += action.bytes;
      if (action.kind == ActionKind::send && action.payload == Payload::unit_gradient) sent += action.bytes;
      if (action.queue == Queue::bulk) {
        EXPECT_LE(action.bytes, outline.part_bytes) << to_string(action);
      }
    }
    EXPECT_EQ(reduced, (10 * mebibyte * (data - 1) + data - 1) / data);
    EXPECT_EQ(gathered, (5 * mebibyte * (data - 1) + data - 1) / data);
    EXPECT_EQ(sent, (10 * mebibyte + data - 1) / data);
  }
}

/// Links of message and data that carry so many bytes a second.
Network with_rates(double message, double data) {
  Network network;
  network.message.picoseconds_per_byte = 1e12 / message;
  network.data.picoseconds_per_byte = 1e12 / data;
  return network;
}

TEST(Parts, TakeTheSlowestLinkThatCarriesAnyAQuarterOfAMillisecond) {
  Outline outline = with_a_large_block(equal_stages(2, 2));
  EXPECT_EQ(part_bytes_on({}, outline), 4 * mebibyte) << "links are free";
  EXPECT_EQ(part_bytes_on(with_rates(2e9, 4e9), outline), 1'000'000) << "nothing but messages goes there";
  tie(outline, {0, 1}, 10 * mebibyte);
  EXPECT_EQ(part_bytes_on(with_rates(2e9, 4e9), outline), 500'000) << "the table's gradient does";
  outline.data = 1;
  EXPECT_EQ(part_bytes_on(with_rates(4e9, 2e9), outline), 1'000'000) << "one replica sums nothing";
  outline.data = 16;
  EXPECT_EQ(part_bytes_on(with_rates(1e8, 1e8), outline), mebibyte) << "a chunk for each data rank";
  outline.data = 2;
  Network queued = with_rates(400e9, 400e9);
  EXPECT_EQ(part_bytes_on(queued, outline), 4 * mebibyte) << "by MPI, however fast";
  queued.longest_part = most_queued_part_bytes;
  EXPECT_EQ(part_bytes_on(queued, outline), 32 * mebibyte) << "a device's queues carry longer ones";
  queued.message = queued.data = with_rates(40e9, 40e9).data;
  EXPECT_EQ(part_bytes_on(queued, outline), 10'000'000) << "which its links carry in 250 us";
}

TEST(Parts, AreAsManyAsTheirLengthSays) {
  Outline outline = with_a_large_block(equal_stages(1, 2, 1, {}, 2));
  outline.part_bytes = mebibyte;  // of which overhangs of two ranks may take an eighth
  const Program program = make_program(outline, "1f1b").program;
  int sums = 0, gathers = 0;
  for (const Action& action : program.ranks[0]) {
    sums += action.kind == ActionKind::reduce && action.unit == 0;
    gathers += action.kind == ActionKind::gather && action.unit == 0;
  }
  EXPECT_EQ(sums, 12);
  EXPECT_EQ(gathers, 6);
}

TEST(Parts, OfOneReplicaAreNotCut) {
  Outline outline = with_a_large_block(equal_stages(1, 2, 1, {}, 2));
  outline.data = 1;
  outline.sharded_optimizer = false;
  const PlannedStep step = make_program(outline, "1f1b");
  for (const Action& action : step.program.ranks[0]) EXPECT_EQ(action.parts, 1);
}

}  // namespace
}  // namespace mindpipe
