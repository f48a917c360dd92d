#include "program/lists/write_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "program/make_program.h"
#include "program/sample_outline.h"
#include "program/unit_bytes.h"

namespace mindpipe {
namespace {

using testing::ElementsAre;

std::vector<std::string> texts_of(const std::vector<Action>& list, Queue queue) {
  std::vector<std::string> texts;
  for (const Action& action : list)
    if (action.queue == queue) texts.push_back(to_string(action));
  return texts;
}

TEST(StepLists, ASmall1f1bReadsAsExpected) {
  const Program program = make_program(equal_stages(2, 2), "1f1b").program;
  EXPECT_THAT(texts_of(program.ranks[0], Queue::compute),
              ElementsAre("forward of micro-batch 0, block 0", "forward of micro-batch 1, block 0",
                          "backward of micro-batch 0, block 0", "backward of micro-batch 1, block 0",
                          "sum_scalar over grid", "update unit 0"));
  EXPECT_THAT(texts_of(program.ranks[1], Queue::receive),
              ElementsAre("receive activation of micro-batch 0 from rank 0",
                          "receive activation of micro-batch 1 from rank 0"));
  EXPECT_THAT(
      texts_of(program.ranks[1], Queue::send),
      ElementsAre("send gradient of micro-batch 0 to rank 0", "send gradient of micro-batch 1 to rank 0"));
  EXPECT_THAT(texts_of(program.ranks[1], Queue::bulk), ElementsAre("reduce unit 1 in block 1 over data"));
}

TEST(StepLists, TheLastBackwardIsSplitByBlockAndReducedPieceByPiece) {
  const Program program = make_program(equal_stages(1, 2, 1, {}, 3), "gpipe").program;
  std::vector<std::string> texts;
  for (const Action& action : program.ranks[0]) texts.push_back(to_string(action));
  EXPECT_THAT(texts,
              ElementsAre("forward of micro-batch 0, blocks 0..2", "forward of micro-batch 1, blocks 0..2",
                          "backward of micro-batch 0, blocks 0..2", "backward of micro-batch 1, block 2",
                          "backward of micro-batch 1, block 1", "reduce unit 2 in block 2 over data",
                          "backward of micro-batch 1, block 0", "reduce unit 1 in block 1 over data",
                          "reduce unit 0 in block 0 over data", "sum_scalar over grid", "update unit 0",
                          "update unit 1", "update unit 2"));
}

TEST(StepLists, GradientsAreFoldedAtTheEndOfEachShard) {
  for (const std::string& schedule : all_schedules()) {
    Outline outline = equal_stages_for(schedule, 2, 6);
    outline.shards = 3;
    for (const auto& list : make_program(outline, schedule).program.ranks) {
      std::map<std::pair<int, MadeGradients>, std::vector<int>> folded;  // by chunk, and when they are made
      for (const Action& action : list)
        for (const MadeGradients made : {MadeGradients::at_once, MadeGradients::later}) {
          const bool makes = adds_to_gradients(action) &&
                             (pass_of(action)->makes == MadeGradients::all || pass_of(action)->makes == made);
          if (makes && action.fold) folded[{action.chunk, made}].push_back(action.micro_batch);
        }
      EXPECT_EQ(std::ssize(folded), 2 * outline.chunks);
      for (const auto& [of, micro_batches] : folded)
        EXPECT_THAT(micro_batches, ElementsAre(1, 3, 5)) << schedule << ", chunk " << of.first;
    }
  }
}

TEST(StepLists, MicroBatchesGoShardByShard) {
  Outline outline = equal_stages(2, 6);
  outline.shards = 3;
  const PlannedStep step = make_program(outline, "1f1b");
  for (const Action& action : step.program.ranks[0])
    if (action.kind == ActionKind::forward) {
      EXPECT_EQ(action.shard, action.micro_batch / 2);
    }
}

/// Bytes that rank 0 sends, by payload or collective.
std::map<std::string, std::int64_t> sent_by(const std::vector<Action>& list) {
  std::map<std::string, std::int64_t> sent;
  for (const Action& action : list)
    if (action.kind == ActionKind::send || is_collective(action))
      sent[std::string(action.kind == ActionKind::send ? name_of(action.payload) : name_of(action.kind))] +=
          action.bytes;
  return sent;
}

TEST(StepLists, VolumesAreTheClosedForms) {
  Outline outline = equal_stages(3, 4, 2);
  outline.data = 4;
  tie(outline, {0, 5}, 40);
  auto sent = sent_by(make_program(outline, "interleaved").program.ranks[0]);
  EXPECT_EQ(sent["activation"], 2 * 4 * 8) << "two chunks, four micro-batches";
  EXPECT_EQ(sent["gradient"], 1 * 4 * 8) << "chunk 0 has none to send on";
  EXPECT_EQ(sent["unit gradient"], 40);
  EXPECT_EQ(sent["reduce"], 2 * (2 * 3 * 40 / 4)) << "2 (d-1)/d for each of two blocks";
  EXPECT_EQ(sent["gather"], 0);
  outline.sharded_optimizer = true;
  sent = sent_by(make_program(outline, "interleaved").program.ranks[0]);
  EXPECT_EQ(sent["reduce"], 2 * (3 * 40 / 4));
  EXPECT_EQ(sent["gather"], 2 * (3 * 40 / 4));
  EXPECT_EQ(sent["unit gradient"], 10) << "each rank's own part";
}

TEST(StepLists, ARankSendsEachRootOfItsShards) {
  Outline outline = equal_stages(1, 6);
  outline.shards = 3;
  outline.data = 2;
  EXPECT_EQ(accumulator_bytes(outline, 0), 3 * 40) << "of three shards, two may wait for their partners";
  EXPECT_EQ(sent_by(make_program(outline, "1f1b").program.ranks[0])["reduce"], (2 + 1) * 40 / 2);
  outline.sharded_optimizer = true;
  auto sent = sent_by(make_program(outline, "1f1b").program.ranks[0]);
  EXPECT_EQ(sent["reduce"], 2 * 40 / 2);
  EXPECT_EQ(sent["gather"], 40 / 2);
  outline.data = 1;
  EXPECT_EQ(accumulator_bytes(outline, 0), 2 * 40);
}

TEST(StepLists, ATiedTableOnOneRankSendsNothing) {
  Outline outline = equal_stages(1, 2, 1, {}, 3);
  tie(outline, {0, 2}, 40);
  EXPECT_EQ(sent_by(make_program(outline, "1f1b").program.ranks[0]).count("unit gradient"), 0u);
}

TEST(StepLists, ThreeUsesOfATableMeetEverywhere) {
  Outline outline = equal_stages(3, 2);
  tie(outline, {0, 1, 2}, 40);
  for (const auto& list : make_program(outline, "1f1b").program.ranks)
    EXPECT_EQ(sent_by(list)["unit gradient"], 80);
}

TEST(StepLists, EncoderMemoryCrossesItsCutsBothWays) {
  Outline outline = equal_stages(4, 2);
  outline.cuts[1] = {8, 0, 8, 0};     // inside the encoder
  outline.cuts[2] = {0, 32, 0, 64};   // between encoder and decoder: memory alone
  outline.cuts[3] = {8, 32, 16, 64};  // inside the decoder
  const Program program = make_program(outline, "1f1b").program;
  const auto counts = [&](int rank, ActionKind kind, Payload payload) {
    int count = 0;
    for (const Action& action : program.ranks[rank])
      count += action.kind == kind && action.payload == payload;
    return count;
  };
  EXPECT_EQ(counts(1, ActionKind::send, Payload::activation), 0);
  EXPECT_EQ(counts(1, ActionKind::send, Payload::encoder_output), 2);
  EXPECT_EQ(counts(1, ActionKind::receive, Payload::encoder_output_gradient), 2);
  EXPECT_EQ(counts(2, ActionKind::send, Payload::activation), 2);
  EXPECT_EQ(counts(2, ActionKind::send, Payload::encoder_output), 2);
  EXPECT_EQ(counts(3, ActionKind::send, Payload::encoder_output_gradient), 2);
  EXPECT_EQ(counts(0, ActionKind::receive, Payload::encoder_output_gradient), 0);
}

TEST(StepLists, ThePaddingOfInterleavedIsLeftOut) {
  for (int m : {1, 3, 5, 7}) {
    const Order order = interleaved_order({.stages = 4, .micro_batches = m, .chunks = 2});
    for (const auto& list : order) EXPECT_EQ(list.size(), static_cast<std::size_t>(2 * 2 * m)) << m;
  }
}

TEST(StepLists, ListsReadAsLines) {
  const PlannedStep step = make_program(equal_stages(2, 1), "1f1b");
  const auto lines_of = [&](int rank) {
    std::vector<std::string> lines;
    for (const Action& action : step.program.ranks[rank])
      lines.push_back(line_of(action, static_cast<int>(lines.size())));
    return lines;
  };
  EXPECT_THAT(
      lines_of(0),
      ElementsAre(
          "0 [compute] forward of micro-batch 0, block 0 | tape 0 to 1",
          "1 [send] send activation of micro-batch 0 to rank 1 | from 1 | 8 bytes | ticket 0 | after 0",
          "2 [receive] receive gradient of micro-batch 0 from rank 1 | to 0 | 8 bytes | ticket 1",
          "3 [compute] backward of micro-batch 0, block 0, clears, folds shard 0 | tape 0 from 0 | after 2",
          "4 [bulk] reduce unit 0 in block 0 over data | ticket 3 | after 3",
          "5 [compute] sum_scalar over grid | 24 bytes | ticket 4 | after 4", "6 [compute] update unit 0"));
  EXPECT_THAT(
      lines_of(1),
      ElementsAre("0 [receive] receive activation of micro-batch 0 from rank 0 | to 1 | 8 bytes | ticket 0",
                  "1 [compute] forward of micro-batch 0, block 1 | tape 0 from 1 | after 0",
                  "2 [compute] backward of micro-batch 0, block 1, clears, folds shard 0 | tape 0 to 0",
                  "3 [send] send gradient of micro-batch 0 to rank 0 | from 0 | 8 bytes | ticket 1 | after 2",
                  "4 [bulk] reduce unit 1 in block 1 over data | ticket 2 | after 2",
                  "5 [compute] sum_scalar over grid | 24 bytes | ticket 4 | after 4",
                  "6 [compute] update unit 1"));
}

}  // namespace
}  // namespace mindpipe
