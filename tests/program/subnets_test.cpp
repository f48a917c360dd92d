#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program/check/checker.h"
#include "program/sample_outline.h"

namespace mindpipe {
namespace {

using testing::Contains;
using testing::HasSubstr;

TEST(Subnets, AreNamedInTextsUnlessTheActionIsOfAStep) {
  Action pass = action_of(ActionKind::forward), update = action_of(ActionKind::update),
         send = action_of(ActionKind::send), reduce = action_of(ActionKind::reduce);
  pass.micro_batch = send.micro_batch = 3;
  pass.last = 1;
  send.payload = Payload::activation;
  send.peer = 2;
  update.unit = reduce.unit = 4;
  EXPECT_EQ(to_string(pass), "forward of micro-batch 3, block 0");
  for (Action* action : {&pass, &update, &send, &reduce}) action->owner = {Owner::subnet, 7};
  EXPECT_EQ(to_string(pass), "forward of micro-batch 3 of subnet 7, block 0");
  EXPECT_EQ(to_string(update), "update unit 4 of subnet 7");
  EXPECT_EQ(to_string(send), "send activation of micro-batch 3 of subnet 7 to rank 2");
  EXPECT_EQ(to_string(reduce), "reduce unit 4 in block 0 of subnet 7 over data");
}

TEST(Subnets, EndsOfAMessageThatBelongToTwoAreFound) {
  const Outline outline = equal_stages(2, 2);
  Program program = make_program(outline, "1f1b").program;
  const auto received = std::find_if(program.ranks[1].begin(), program.ranks[1].end(),
                                     [](const Action& a) { return a.kind == ActionKind::receive; });
  received->owner.number = 1;
  EXPECT_THAT(check(program, outline), Contains(HasSubstr("which is something else")));
}

}  // namespace
}  // namespace mindpipe
