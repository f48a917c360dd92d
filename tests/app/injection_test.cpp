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

TEST(Injection, SaysHowSlowHowOftenAndBetweenWhom) {
  const auto slow = [](const std::string& text) {
    const Injection injection = parse_injection(text);
    return std::tuple(injection.factor, injection.seconds, injection.every);
  };
  EXPECT_EQ(slow("slow@0:3:2.5s"), std::tuple(0, 2.5, 0));
  EXPECT_EQ(slow("slow@0:3:5ms/1"), std::tuple(0, 0.005, 1));
  EXPECT_EQ(slow("slow@0:3:1.5"), std::tuple(1.5, 0, 0));
  EXPECT_EQ(slow("slow@0:3:1.5/7"), std::tuple(1.5, 0, 7));
  EXPECT_EQ(slow("jitter@0:3:0.2"), std::tuple(0.2, 0, 0));
  EXPECT_EQ(slow("uneven@0:3:0.2"), std::tuple(0.2, 0, 0));
  const Injection link = parse_injection("slow-link@1-12:10:2ms"),
                  skew = parse_injection("skew@5:0:7ms+20ppm"), back = parse_injection("skew@5:0:-7ms-20ppm");
  EXPECT_EQ(std::tuple(link.rank, link.peer, link.step, link.seconds), std::tuple(1, 12, 10, 0.002));
  EXPECT_EQ(std::pair(skew.seconds, skew.ppm), std::pair(0.007, 20.0));
  EXPECT_EQ(std::pair(back.seconds, back.ppm), std::pair(-0.007, -20.0));
}

TEST(Injection, EndsWhereALastStepIsNamed) {
  const auto steps = [](const std::string& text) {
    const Injection injection = parse_injection(text);
    return std::tuple(injection.step, injection.last);
  };
  EXPECT_EQ(steps("slow@0:30-60:1.5"), std::tuple(30, 60));
  EXPECT_EQ(steps("slow@0:30-30:5ms/2"), std::tuple(30, 30));
  EXPECT_EQ(steps("jitter@0:3-4:0.2"), std::tuple(3, 4));
  EXPECT_EQ(steps("slow-link@1-12:10-19:2ms"), std::tuple(10, 19));
  EXPECT_GT(parse_injection("slow@0:30:1.5").last, 1 << 30);
}

TEST(Injection, IsRefusedInOneSentenceWhereItNamesNothingThatThereIs) {
  for (const auto& [text, why] : {std::pair{"nan", "it names no rank and step"},
                                  {"nan@1", "it names no rank and step"},
                                  {"burn@0:1", "burn is no kind of fault"},
                                  {"nan@:1", "nothing is no rank"},
                                  {"nan@-1:1", "-1 is no rank"},
                                  {"nan@x:1", "x is no rank"},
                                  {"nan@0:", "nothing is no step"},
                                  {"nan@0:0", "steps count from 1"},
                                  {"nan@0:1.5", "1.5 is no step"},
                                  {"nan@0:99999999999999999999", "is no step"},
                                  {"kill@0:1:9", "kill takes no argument"},
                                  {"exit@0:1:x", "x is no exit code"},
                                  {"exit@0:1:300", "an exit code is at most 255"},
                                  {"slow@0:1:soon", "soon is no time"},
                                  {"slow@0:1:0", "0 is no factor"},
                                  {"slow@0:1:1.5/0", "0 is no number of steps"},
                                  {"slow@0:60-30:1.5", "it ends before it begins"},
                                  {"slow@0:30-:1.5", "nothing is no step"},
                                  {"slow@0:30-60:2s", "it sleeps once, and has no end"},
                                  {"slow@0:30-60", "it sleeps once, and has no end"},
                                  {"nan@0:3-5", "3-5 is no step"},
                                  {"slow-link@1:1:2ms", "a link is two ranks"},
                                  {"slow-link@1-2:1", "slow-link takes seconds"},
                                  {"slow@0:1:-5ms", "-5ms is no time"},
                                  {"slow@0:1:nan", "nan is no time"},
                                  {"slow-link@1-2:1:-2ms", "-2ms is no time"},
                                  {"jitter@1:1:2", "2 is no share"},
                                  {"jitter@1:1:nan", "nan is no share"},
                                  {"uneven@1:1:0", "0 is no share"},
                                  {"uneven@1:1", "uneven takes a share behind the step"},
                                  {"skew@1:1:7ms+1e300ppm", "1e300ppm is no rate of a clock"},
                                  {"skew@1:1:7ms+20", "20 is no rate of a clock"}})
    EXPECT_THAT(complaint(text), testing::HasSubstr(std::string("--inject ") + text + ": " +
                                                    (why[0] == 'i' && why[1] == 's' ? "" : why)))
        << text;
}

}  // namespace
}  // namespace mindpipe
