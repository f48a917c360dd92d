#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program/make_program.h"
#include "program/sample_outline.h"
#include "program/schedules/order.h"

namespace mindpipe {
namespace {

using testing::ElementsAre;

/// The span of the first action of a kind on a rank.
Span span_of(const PlannedStep& step, int rank, ActionKind kind) {
  const auto& list = step.program.ranks[rank];
  for (std::size_t i = 0; i < list.size(); ++i)
    if (list[i].kind == kind) return step.expected.spans[rank][i];
  ADD_FAILURE() << "no such action";
  return {};
}

TEST(TensorSums, AreTimeOfTheirPassLatencyAndBytes) {
  Outline outline = equal_stages(1, 1);
  outline.blocks[0][0].forward_sums = {2, 100};
  outline.blocks[0][0].backward_sums = {1, 50};
  Network network;
  network.tensor = {10, 1000};
  const PlannedStep step = make_program(outline, "1f1b", network);
  const Span forward = span_of(step, 0, ActionKind::forward),
             backward = span_of(step, 0, ActionKind::backward);
  EXPECT_EQ(forward.end - forward.start, 1000 + 2 * 10 + 100);
  EXPECT_EQ(backward.end - backward.start, 2000 + 10 + 50);
  EXPECT_THAT(step.expected.sums, ElementsAre(2 * 10 + 100 + 10 + 50));
  EXPECT_EQ(step.expected.bubble(0), 0) << "a sum is a part of its pass";
}

TEST(TensorSums, OfABlockAreThoseOfItsPasses) {
  Outline outline = equal_stages(1, 2, 1, {}, 2);
  outline.blocks[0][0].forward_sums = {2, 100};
  outline.blocks[1][0].forward_sums = {1, 30};
  outline.blocks[0][0].backward_sums = {3, 70};
  outline.blocks[1][0].backward_sums = {4, 5};
  for (const char* schedule : {"1f1b", "zb-h1"}) {
    const Program program = make_program(outline, schedule).program;
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

}  // namespace
}  // namespace mindpipe
