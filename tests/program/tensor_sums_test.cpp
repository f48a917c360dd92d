#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program/lists/assemble.h"
#include "program/make_program.h"
#include "program/sample_outline.h"
#include "program/schedules/order.h"

namespace mindpipe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// The span of the n-th action of a kind on a rank.
Span span_of(const PlannedStep& step, int rank, ActionKind kind, int nth = 0,
             Payload payload = Payload::none) {
  const auto& list = step.program.ranks[rank];
  for (std::size_t i = 0; i < list.size(); ++i)
    if (list[i].kind == kind && (payload == Payload::none || list[i].payload == payload) && nth-- == 0)
      return step.expected.spans[rank][i];
  ADD_FAILURE() << "no such action";
  return {};
}

Network with_tensor(Link link) {
  Network network;
  network.tensor = link;
  return network;
}

TEST(TensorSums, AreTimeOfTheirPassLatencyAndBytes) {
  Outline outline = equal_stages(1, 1);
  outline.blocks[0][0].forward_sums = {2, 100};
  outline.blocks[0][0].backward_sums = {1, 50};
  for (int shared : {-1, 0}) {
    const PlannedStep step = make_program(outline, "1f1b", with_tensor({10, 1000, shared}));
    const Span forward = span_of(step, 0, ActionKind::forward),
               backward = span_of(step, 0, ActionKind::backward);
    EXPECT_EQ(forward.end - forward.start, 1000 + 2 * 10 + 100) << shared;
    EXPECT_EQ(backward.end - backward.start, 2000 + 10 + 50) << shared;
    EXPECT_THAT(step.expected.sums, ElementsAre(2 * 10 + 100 + 10 + 50)) << shared;
    EXPECT_EQ(step.expected.bubble(0), 0) << "a sum is a part of its pass";
  }
}

TEST(TensorSums, OfABlockAreThoseOfItsPasses) {
  Outline outline = equal_stages(1, 2, 1, {}, 2);
  outline.blocks[0][0].forward_sums = {2, 100};
  outline.blocks[1][0].forward_sums = {1, 30};
  outline.blocks[0][0].backward_sums = {3, 70};
  outline.blocks[1][0].backward_sums = {4, 5};
  for (const char* schedule : {"1f1b", "zb-h1"}) {
    const Program program = assemble(
        outline, make_order(schedule_named(schedule), {.micro_batches = 2, .micro_batches_of_shard = 2}));
    int sums = 0;
    std::int64_t bytes = 0;
    for (const Action& action : program.ranks[0]) {
      if (action.kind == ActionKind::forward) {
        EXPECT_EQ(action.sums, 3);
        EXPECT_EQ(action.bytes, 130);
      }
      if (is_backward(action)) {
        sums += action.sums;
        bytes += action.bytes;
      }
      if (action.kind == ActionKind::backward_weight) {
        EXPECT_EQ(action.sums, 0) << "what crosses ranks is in the input's half";
      }
    }
    EXPECT_EQ(sums, 2 * 7) << schedule << ": of pieces, too";
    EXPECT_EQ(bytes, 2 * 75) << schedule;
  }
}

/// A message of 1500 ns and a sum of 100 ns meet on one link.
TEST(TensorSums, WaitForAMessageThatHasASharedLink) {
  Outline outline = equal_stages(2, 2);
  outline.cuts[1].activation = 1500;
  outline.blocks[0][0].forward_sums = {1, 100};
  Network network = with_tensor({0, 1000, 0});
  network.message = {0, 1000, 0};
  const PlannedStep step = make_program(outline, "gpipe", network);
  EXPECT_EQ(span_of(step, 0, ActionKind::forward, 0).end, 1000 + 100);
  EXPECT_EQ(span_of(step, 0, ActionKind::send, 0, Payload::activation).end, 1100 + 1500);
  EXPECT_EQ(span_of(step, 0, ActionKind::forward, 1).end, 2600 + 100)
      << "computed at 2100, the link is free at 2600";
  EXPECT_EQ(step.expected.sums[0], 100 + 500 + 100) << "waits for the link are the sums'";
  EXPECT_EQ(span_of(step, 0, ActionKind::send, 1, Payload::activation).end, 2700 + 1500);
}

/// A tensor sum is the first to get a link that others wait for: passes wait for it.
TEST(TensorSums, GoBeforeAllOtherTraffic) {
  // The last two blocks' gradients are reduced one after the other, 1000 ns each, while the block before
  // computes and sums.
  Outline outline = equal_stages(1, 1, 1, {3000, 3000, 1500, 1500}, 3);
  outline.data = 2;
  for (UnitCost& unit : outline.units) unit.gradients = 1500;
  outline.blocks[0][0].backward_sums = {1, 100};
  Network network = with_tensor({0, 1000, 0});
  network.data = {0, 1000, 0};  // a sum of 1500 bytes sends as many
  const PlannedStep step = make_program(outline, "1f1b", network);
  // Backwards end at 4000 and 5000; the reductions run from 4000 and 5500; block 0 is computed at 6000, its
  // sum waits until 7000.
  EXPECT_EQ(span_of(step, 0, ActionKind::reduce, 0).end, 5500);
  EXPECT_EQ(span_of(step, 0, ActionKind::reduce, 1).end, 7000);
  EXPECT_EQ(span_of(step, 0, ActionKind::backward, 2).end, 7100);
  outline.data = 1;
  EXPECT_EQ(span_of(make_program(outline, "1f1b", network), 0, ActionKind::backward, 2).end, 6100);
}

TEST(TensorSums, SeveralInAPassLetMessagesThroughInBetween) {
  Outline outline = equal_stages(2, 2);
  outline.cuts[1].activation = 100;
  outline.blocks[0][0].forward_sums = {4, 400};
  Network network = with_tensor({0, 1000, 0});
  network.message = {0, 1000, 0};
  const PlannedStep step = make_program(outline, "gpipe", network);
  // Four times 250 ns of computing and a sum of 100; the first micro-batch's message goes while the second
  // one computes.
  EXPECT_EQ(span_of(step, 0, ActionKind::forward, 0).end, 1400);
  EXPECT_EQ(span_of(step, 0, ActionKind::send, 0, Payload::activation).end, 1500);
  EXPECT_EQ(span_of(step, 0, ActionKind::forward, 1).end, 2800) << "nothing was in its way";
}

}  // namespace
}  // namespace mindpipe
