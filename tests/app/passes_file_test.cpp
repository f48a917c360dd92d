#include <gmock/gmock.h>

#include "the_program.h"

// The order of passes that a run has searched, beside its configuration.
namespace mindpipe {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

using PassesFile = TheProgram;

TEST_F(PassesFile, ALaterStartTakesTheOrderThatWasFoundOrSaysWhatIsWrongWithIt) {
  const auto train = [&](const std::string& settings) {
    return run_command("cd " MINDPIPE_SOURCE_DIR " && tests/run_mpi.sh 2 " MINDPIPE_BINARY
                       " train --config " +
                       (root_ / "tiny.yaml").string() +
                       " model.layers=4 grid.pipeline=2 schedule.kind=searched train.micro_batch=1"
                       " train.evaluate_every=0 " +
                       settings);
  };
  const std::string file = (root_ / "run/passes.txt").string();
  const Answer first = train("run.stop_after=2");
  ASSERT_EQ(first.code, 75) << first.text;
  EXPECT_THAT(first.text, HasSubstr("order of passes: searched"));
  const std::string found = read("run/passes.txt");
  const Answer second = train("run.stop_after=3");
  ASSERT_EQ(second.code, 75) << second.text;
  EXPECT_THAT(second.text, HasSubstr("order of passes: that of " + file));
  EXPECT_EQ(read("run/passes.txt"), found);

  const Answer other = train("run.stop_after=3 schedule.memory=2 run.dir=" + (root_ / "other").string());
  ASSERT_EQ(other.code, 75) << other.text;
  std::ofstream(file) << read("other/passes.txt");
  const Answer asks_less = train("");
  EXPECT_EQ(asks_less.code, 0) << asks_less.text;
  EXPECT_THAT(asks_less.text, HasSubstr("order of passes: searched")) << "that was found with more memory";
  EXPECT_EQ(read("run/passes.txt"), found);

  const std::size_t last = found.rfind(".3"), earlier = found.rfind(".2");
  ASSERT_LT(earlier, last) << found;
  std::string turned = found;
  turned[last + 1] = '2';
  turned[earlier + 1] = '3';
  std::ofstream(file) << turned;
  const Answer refused = train("train.steps=5");
  EXPECT_EQ(refused.code, 78) << refused.text << turned;
  EXPECT_THAT(refused.text, AllOf(HasSubstr(file + ": "), HasSubstr("remove the file"))) << turned;
  EXPECT_THAT(refused.text, Not(HasSubstr("internal")));
}

}  // namespace
}  // namespace mindpipe
