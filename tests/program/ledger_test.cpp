#include "program/lists/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program/lists/buffer_ring.h"

// Which actions of a list wait for each other because of the rooms that they use.
namespace mindpipe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// What an action at `place` waits for.
std::vector<int> waits_of_read(const Ledger& ledger, Room& room, int place, ActionKind kind) {
  Action action = action_of(kind);
  ledger.read(room, place, action);
  return action.after;
}
std::vector<int> waits_of_write(const Ledger& ledger, Room& room, int place, ActionKind kind) {
  Action action = action_of(kind);
  ledger.write(room, place, action);
  return action.after;
}

TEST(Ledger, AReaderWaitsForWritersAndAWriterForReaders) {
  const Ledger ledger;
  Room buffer;
  EXPECT_THAT(waits_of_write(ledger, buffer, 3, ActionKind::forward), IsEmpty());
  EXPECT_THAT(waits_of_read(ledger, buffer, 4, ActionKind::send), ElementsAre(3));
  EXPECT_THAT(waits_of_read(ledger, buffer, 5, ActionKind::send), ElementsAre(3));
  EXPECT_THAT(waits_of_write(ledger, buffer, 7, ActionKind::forward), ElementsAre(4, 5))
      << "who has read has waited for the writer";
  EXPECT_THAT(waits_of_read(ledger, buffer, 8, ActionKind::send), ElementsAre(7));
}

TEST(Ledger, NothingWaitsWithinTheComputeQueue) {
  const Ledger ledger;
  Room slot;
  waits_of_write(ledger, slot, 0, ActionKind::receive);
  EXPECT_THAT(waits_of_read(ledger, slot, 1, ActionKind::forward), ElementsAre(0));
  EXPECT_THAT(waits_of_read(ledger, slot, 2, ActionKind::backward), ElementsAre(0));
  EXPECT_THAT(waits_of_write(ledger, slot, 3, ActionKind::receive), ElementsAre(2))
      << "of the compute queue the newest is enough";
  EXPECT_THAT(waits_of_write(ledger, slot, 4, ActionKind::forward), ElementsAre(3));
  EXPECT_THAT(waits_of_write(ledger, slot, 5, ActionKind::backward), IsEmpty());
}

TEST(Ledger, ThoseWhoWriteTogetherWaitForTheSameAndAreAllWaitedFor) {
  const Ledger ledger;
  Room slot;
  waits_of_write(ledger, slot, 0, ActionKind::receive);
  Action other = action_of(ActionKind::receive);
  ledger.join(slot, 1, other);
  EXPECT_THAT(other.after, IsEmpty());
  EXPECT_THAT(waits_of_read(ledger, slot, 2, ActionKind::forward), ElementsAre(0, 1));
  EXPECT_THAT(waits_of_write(ledger, slot, 3, ActionKind::receive), ElementsAre(2));
  ledger.join(slot, 4, other);
  EXPECT_THAT(other.after, ElementsAre(2));
  EXPECT_THAT(waits_of_read(ledger, slot, 5, ActionKind::forward), ElementsAre(3, 4));
}

TEST(Ledger, WhatStandsBeforeAStretchIsNamedFromItsBeginning) {
  Ledger ledger;
  Room sum;
  waits_of_write(ledger, sum, 10, ActionKind::backward);
  ledger.begin_at(12);
  EXPECT_THAT(waits_of_read(ledger, sum, 12, ActionKind::reduce), ElementsAre(-2));
}

TEST(BufferRing, TakesTurnsInARingAndTheFirstThatIsEmptyInAHandOver) {
  BufferRing ring({4, 5}, false), hand_over({4, 5}, true);
  for (BufferRing* buffers : {&ring, &hand_over}) {
    EXPECT_EQ(buffers->fill().number, 4);
    EXPECT_EQ(buffers->oldest().number, 4);
    buffers->empty_oldest();
  }
  EXPECT_EQ(ring.fill().number, 5);
  EXPECT_EQ(hand_over.fill().number, 4);
  EXPECT_EQ(hand_over.fill().number, 5);
  hand_over.empty_oldest();
  EXPECT_EQ(hand_over.oldest().number, 5);
  EXPECT_EQ(hand_over.fill().number, 4);
}

}  // namespace
}  // namespace mindpipe
