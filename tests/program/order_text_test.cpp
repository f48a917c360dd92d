#include "program/schedules/order_text.h"

#include <gmock/gmock.h>

#include "program/make_program.h"
#include "program/sample_outline.h"

// Orders as text, from one start to the next.
namespace mindpipe {
namespace {

using testing::HasSubstr;

const Outline& outline() {
  static const Outline made = [] {
    Outline one = stages_of_gpt2("searched", 4, 8, {12000, 24000, 12000, 12000});
    one.tapes_percent = 110;
    return one;
  }();
  return made;
}

std::string question(const Outline& asked = outline()) {
  return question_of_search(asked, PriceList(asked, {}));
}

std::string refusal(const std::string& text) {
  try {
    make_program(outline(), ScheduleKind::searched, {}, {}, {"passes.txt", text});
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::bad_configuration) << error.what();
    return error.what();
  }
  return "";
}

/// The text with the first `from` behind a stage's line begun turned into `to`.
std::string changed(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from, text.find("asked"));
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(OrderText, IsTakenAsItIsWhereAStartAsksTheSame) {
  const PlannedStep found = make_program(outline(), ScheduleKind::searched);
  ASSERT_FALSE(found.found_order.empty());
  const PlannedStep known =
      make_program(outline(), ScheduleKind::searched, {}, {}, {"passes.txt", found.found_order});
  EXPECT_TRUE(known.found_order.empty()) << "nothing was searched";
  EXPECT_EQ(known.expected.step, found.expected.step);
  const auto order = order_of_text(found.found_order, question(), request_of(outline()), "passes.txt");
  ASSERT_TRUE(order);
  EXPECT_EQ(text_of_order(*order, question()), found.found_order);
  EXPECT_EQ(*order, order_of_step(outline(), ScheduleKind::searched, {}));

  Outline other = outline();
  other.tapes_percent = 150;
  EXPECT_NE(question(other), question());
  EXPECT_FALSE(make_program(other, ScheduleKind::searched, {}, {}, {"passes.txt", found.found_order})
                   .found_order.empty())
      << "it was found with less memory";
}

TEST(OrderText, IsRefusedWithItsFirstFault) {
  const std::string text = make_program(outline(), ScheduleKind::searched).found_order;
  EXPECT_EQ(refusal(text), "");
  EXPECT_THAT(refusal("F0.0\n"), HasSubstr("passes.txt: begins with no line \"asked"));
  EXPECT_THAT(refusal(changed(text, "F0.0 ", "")), HasSubstr("passes.txt: stage 0 has not come to F0.1"));
  EXPECT_THAT(refusal(changed(text, "F0.0", "F0.1")), HasSubstr("passes.txt: stage 0 has not come to F0.1"));
  EXPECT_THAT(refusal(changed(text, "F0.0", "F1.0")), HasSubstr("passes.txt: stage 0 has no pass F1.0"));
  EXPECT_THAT(refusal(changed(text, "F0.0", "F0.8")), HasSubstr("passes.txt: stage 0 has no pass F0.8"));
  EXPECT_THAT(refusal(changed(text, "F0.0", "G0.0")),
              HasSubstr("passes.txt: stage 0 has 'G0.0', which is no pass"));
  EXPECT_THAT(refusal(changed(text, "F0.0", "F0.0x")), HasSubstr("which is no pass"));
  const std::size_t line = text.rfind('\n', text.size() - 2) + 1;
  EXPECT_THAT(refusal(text.substr(0, line)), HasSubstr("passes.txt: has the passes of 3 stages, not 4"));
  EXPECT_THAT(refusal(text.substr(0, text.rfind(' '))), HasSubstr("passes.txt: stage 3 lacks "));
  EXPECT_THAT(refusal(changed(text, "F0.0 ", "I0.0 F0.0 ")), HasSubstr("stage 0 has no forward before I0.0"));
  EXPECT_THAT(refusal(changed(text, "F0.0 ", "F0.0 W0.0 ")), HasSubstr("stage 0 has not come to W0.0"));
  EXPECT_THAT(refusal(changed(text, "F0.0 ", "W0.-1 F0.0 ")), HasSubstr("stage 0 has no pass W0.-1"));

  EXPECT_THAT(refusal(changed(changed(text, " F7.0", ""), "F0.0 ", "F7.0 F0.0 ")),
              HasSubstr("passes.txt: the stages wait for each other for ever"));
}

/// What only the lists show: a whole backward adds to weights before the half of an earlier micro-batch does.
TEST(OrderText, IsRefusedWithTheFirstFindingOfTheChecker) {
  Order order = order_of_step(outline(), ScheduleKind::searched, {});
  const auto at = [&](std::vector<Pass>& passes, ActionKind kind, int chunk, int micro_batch) {
    return std::find(passes.begin(), passes.end(), Pass{kind, chunk, micro_batch});
  };
  int turned = 0;
  for (std::vector<Pass>& passes : order)
    for (int k = 0; k + 1 < outline().micro_batches && turned == 0; ++k)
      for (int chunk = 0; chunk < outline().all_chunks() && turned == 0; ++chunk) {
        const auto later = at(passes, ActionKind::backward_weight, chunk, k);
        if (later == passes.end() || at(passes, ActionKind::backward_weight, chunk, k + 1) == passes.end())
          continue;
        const Pass half = *later;
        passes.erase(later);
        passes.erase(at(passes, ActionKind::backward_weight, chunk, k + 1));
        const auto whole = at(passes, ActionKind::backward_input, chunk, k + 1);
        whole->kind = ActionKind::backward;
        passes.insert(std::next(whole), half);
        ++turned;
      }
  ASSERT_EQ(turned, 1);
  EXPECT_THAT(refusal(text_of_order(order, question())), HasSubstr("passes.txt: rank "));
}

}  // namespace
}  // namespace mindpipe
