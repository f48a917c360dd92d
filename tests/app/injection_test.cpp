#include "app/run/injection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/check.h"

namespace mindpipe {
namespace {

std::string complaint(const std::string& text) {
  try {
    parse_injection(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::usage);
    return error.what();
  }
  return "accepted";
}

TEST(Injection, NamesKindRankStepAndArgument) {
  const Injection nan = parse_injection("nan@1:7"), slow = parse_injection("slow@0:30:2.5s"),
                  flip = parse_injection("flip@3:2:layers.0.norm.gain/m/5/7");
  EXPECT_EQ(std::tuple(nan.kind, nan.rank, nan.step, nan.argument), std::tuple(FaultKind::nan, 1, 7, ""));
  EXPECT_EQ(std::tuple(slow.kind, slow.rank, slow.step, slow.argument),
            std::tuple(FaultKind::slow, 0, 30, "2.5s"));
  EXPECT_EQ(flip.argument, "layers.0.norm.gain/m/5/7");
  EXPECT_EQ(parse_injection("lost-message@0:1").kind, FaultKind::lost_message);
  EXPECT_EQ(text_of({nan, slow}), "nan@1:7,slow@0:30:2.5s");
}

TEST(Injection, IsRefusedInOneSentenceWhereItNamesNothingThatThereIs) {
  for (const auto& [text, why] : {std::pair{"nan", "it names no rank and step"},
                                  {"nan@1", "it names no rank and step"},
                                  {"burn@0:1", "burn is no kind of fault"},
                                  {"nan@:1", "nothing is no rank"},
                                  {"nan@-1:1", "-1 is no rank"},
                                  {"nan@x:1", "x is no rank"},
                                  {"nan@0:", "nothing is no step"},
                                  {"nan@0:1.5", "1.5 is no step"},
                                  {"nan@0:99999999999999999999", "is no step"},
                                  {"kill@0:1:9", "kill takes no argument"},
                                  {"exit@0:1:x", "x is no exit code"},
                                  {"exit@0:1:300", "an exit code is at most 255"},
                                  {"slow@0:1:soon", "soon is no time"}})
    EXPECT_THAT(complaint(text), testing::HasSubstr(std::string("--inject ") + text + ": " +
                                                    (why[0] == 'i' && why[1] == 's' ? "" : why)))
        << text;
}

}  // namespace
}  // namespace mindpipe
