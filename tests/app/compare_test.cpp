// A training beside an earlier run: a program of its own, alone
#include <gmock/gmock.h>

#include "app/the_program.h"

// A training beside an earlier run: --compare.
namespace mindpipe {
namespace {

using testing::HasSubstr;

class Compare : public TheProgram {
 protected:
  /// A training in a directory of its own, held against `earlier`.
  Answer beside(const std::string& earlier, const std::string& directory, const std::string& more) const {
    return tiny("--compare " + path(earlier) + " run.dir=" + path(directory) + " " + more);
  }
  Answer go(const std::string& directory, const std::string& more = "") const {
    return tiny("run.dir=" + path(directory) + " " + more);
  }
  std::string path(const std::string& directory) const { return (root_ / directory).string(); }
};

TEST_F(Compare, FindsTheSameBitsOnOtherLayoutsAndBehindAStop) {
  EXPECT_EQ(go("one", "reproducible.data=2").code, 0);
  const Answer again = beside("one", "two", "reproducible.data=2 train.recompute=block device.threads=2");
  EXPECT_EQ(again.code, 0) << again.text;
  EXPECT_THAT(again.text, HasSubstr("losses of 4 steps are those of " + path("one") +
                                    ", bit for bit; so are the weights, "));
  EXPECT_EQ(go("three", "reproducible.data=2 run.stop_after=2").code, 75);
  const Answer rest = beside("one", "three", "reproducible.data=2");
  EXPECT_EQ(rest.code, 0) << rest.text;
  EXPECT_THAT(rest.text, HasSubstr("losses of 2 steps are those of"));
}

TEST_F(Compare, RefusesARunOfAnotherNameByTheFirstPart) {
  EXPECT_EQ(go("one").code, 0);
  const Answer other = beside("one", "two", "seed=4");
  EXPECT_EQ(other.code, 78) << other.text;
  EXPECT_THAT(other.text, HasSubstr("its arithmetic has another name ("));
  EXPECT_THAT(other.text, HasSubstr("so other bits are no wonder: seed is 4 here and 3 there"));
  EXPECT_EQ(read("two/metrics.jsonl"), "");
  fs::remove_all(root_ / "one" / "checkpoints");
  EXPECT_THAT(beside("one", "three", "seed=4").text,
              HasSubstr("no checkpoint of it is left to say which part differs"));
}

TEST_F(Compare, SaysOfOtherBitsWhichCaseItIs) {
  EXPECT_EQ(go("one").code, 0);
  const Answer course = beside("one", "two", "optimizer.rate.peak=2.0e-3");
  EXPECT_EQ(course.code, 76) << course.text;
  EXPECT_THAT(course.text, HasSubstr(" of step 2 is "));
  EXPECT_THAT(course.text,
              HasSubstr("but not their course: optimizer.rate.peak is 0.002 here and 0.001 there"));
  // A guard that had nothing to do is no reason for other bits.
  const Answer broken = beside("one", "three", "guard.skips=4 --inject flip@0:2:/value/0/22");
  EXPECT_EQ(broken.code, 76) << broken.text;
  EXPECT_THAT(broken.text, HasSubstr("and so is their course: a machine or the program is broken"));
}

TEST_F(Compare, OfRunsThatGoBackWhatStandsIsHeldAgainstTheOther) {
  const std::string bad = "train.steps=10 --inject nan@0:5,nan@0:6,nan@0:7 ", often = "checkpoint.every=2 ",
                    seldom = "checkpoint.every=3 ";
  EXPECT_EQ(go("one", often + bad).code, 0);
  const Answer again = beside("one", "two", often + bad);
  EXPECT_EQ(again.code, 0) << again.text;
  EXPECT_THAT(again.text, HasSubstr("bit for bit; so are the weights, "));
  const Answer other = beside("one", "three", seldom + bad);
  EXPECT_EQ(other.code, 76) << other.text;
  EXPECT_THAT(other.text, HasSubstr(" of step 4 is "));
  EXPECT_THAT(other.text, HasSubstr("but they went back and left out samples 12 to 27 here and none there"));
}

TEST_F(Compare, AStartThatSeesNoSampleLeavesTheirOrderToTheNextOne) {
  EXPECT_EQ(go("one").code, 0);
  EXPECT_EQ(go("two", "train.steps=0").code, 0);
  const Answer later = beside("one", "two", "");
  EXPECT_EQ(later.code, 0) << later.text;
  EXPECT_THAT(later.text, HasSubstr("losses of 4 steps are those of"));
}

TEST_F(Compare, ComparesNothingThatBeganOrEndedElsewhere) {
  EXPECT_EQ(go("one").code, 0);
  const Answer other = beside("one", "two", "run.weights=" + path("one") + "/model.safetensors");
  EXPECT_EQ(other.code, 78) << other.text;
  EXPECT_THAT(other.text, HasSubstr("so other bits are no wonder: contents of run.weights is "));
  EXPECT_THAT(other.text, HasSubstr(" here and none there"));
  EXPECT_EQ(go("three").code, 0);
  const Answer finished = beside("one", "three", "");
  EXPECT_EQ(finished.code, 78) << finished.text;
  EXPECT_THAT(finished.text, HasSubstr("is finished, so no step of it would be compared"));
  fs::remove_all(root_ / "one" / "checkpoints");
  const Answer course = beside("one", "four", "optimizer.rate.peak=2.0e-3");
  EXPECT_EQ(course.code, 76) << course.text;
  EXPECT_THAT(course.text, HasSubstr("but not their course: optimizer.rate.peak is"));
}

TEST_F(Compare, NeedsAnotherRunThatNamesItsArithmetic) {
  EXPECT_EQ(beside("none", "one", "").code, 66);
  EXPECT_EQ(go("one").code, 0);
  const Answer itself = beside("one", "one", "train.steps=5");
  EXPECT_EQ(itself.code, 78) << itself.text;
  EXPECT_THAT(itself.text, HasSubstr("is the directory of this run"));
  std::ofstream(root_ / "one" / "metrics.jsonl") << "{\"step\": 1, \"loss\": 5}\n";
  const Answer old = beside("one", "two", "");
  EXPECT_EQ(old.code, 78) << old.text;
  EXPECT_THAT(old.text, HasSubstr("names no arithmetic"));
}

}  // namespace
}  // namespace mindpipe
