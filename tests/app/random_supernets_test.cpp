// thorough
#include "random_supernets.h"

#include <gmock/gmock.h>

#include "app/plan/dry_run.h"
#include "app/plan/grid_choice.h"
#include "app/the_program.h"
#include "app/verdicts.h"
#include "core/check.h"
#include "plan/memory_limits.h"

// What plan and --dry-run say of a supernet that is drawn is what its start plans, in this process for all;
// the real program does it for a few, whose runs leave the bits of one rank.
namespace mindpipe {
namespace {

class RandomSupernets : public TheProgram {
 protected:
  std::string written(const RandomSupernet& drawn, const std::string& name) const {
    const std::string file = (root_ / (name + ".yaml")).string();
    std::ofstream(file) << drawn.text((root_ / name).string());
    return file;
  }
  Answer on_ranks(int ranks, const std::string& arguments) const {
    return run_command(
        fmt::format("{}/tests/run_mpi.sh {} {} {}", MINDPIPE_SOURCE_DIR, ranks, MINDPIPE_BINARY, arguments));
  }
  /// The exit code of the run, which plan and --dry-run have, too.
  int verdict_on(const RandomSupernet& drawn, const std::string& name) const {
    const std::string file = written(drawn, name),
                      on_paper = fmt::format("--config {} --ranks {}", file, drawn.ranks());
    const Answer planned = run("plan " + on_paper), dry = run("--dry-run " + on_paper),
                 ran = on_ranks(drawn.ranks(), "--config " + file);
    EXPECT_EQ(dry.code, planned.code) << drawn.name() << '\n' << planned.text << dry.text;
    EXPECT_EQ(ran.code, planned.code) << drawn.name() << '\n' << planned.text << ran.text;
    return ran.code;
  }
  void expect_bits_of_one_rank(const RandomSupernet& drawn, const std::string& name) const {
    const Answer alone = on_ranks(
        1, fmt::format("--config {} run.dir={} grid.supernet=1 grid.pipeline=1 grid.data=1 grid.tensor=1 "
                       "supernet.cuts=home supernet.admission=auto supernet.slots=auto "
                       "train.sequence_parallel=false",
                       (root_ / (name + ".yaml")).string(), (root_ / "alone").string()));
    EXPECT_EQ(alone.code, 0) << alone.text;
    EXPECT_FALSE(read("alone/model.safetensors").empty());
    EXPECT_TRUE(read(name + "/model.safetensors") == read("alone/model.safetensors")) << drawn.name();
    fs::remove_all(root_ / "alone");
  }
};

bool is_refused(const RandomSupernet& drawn) {
  try {
    drawn.read();
    return false;
  } catch (const Error&) {
    return true;
  }
}

TEST_F(RandomSupernets, ArePlannedTriedAndRunWithOneVerdict) {
  int ran = 0, refused = 0;
  for (int number = 1; number <= random_supernets && (ran < 2 || refused < 2); ++number) {
    const RandomSupernet drawn(number);
    const std::string name = fmt::format("random-{}", number);
    if (is_refused(drawn)) {
      if (++refused > 2) continue;
      EXPECT_EQ(verdict_on(drawn, name), 78);
      EXPECT_FALSE(fs::exists(root_ / name)) << drawn.name();
    } else if (drawn.ranks() > 1 && drawn.ranks() <= 4 && ran < 2) {
      ++ran;
      EXPECT_EQ(verdict_on(drawn, name), 0);
      expect_bits_of_one_rank(drawn, name);
    }
  }
  EXPECT_EQ(ran, 2);
  EXPECT_GE(refused, 2);
}

/// The plan with which ranks would begin, in a job that has as many as the grid.
RunPlan plan_of_start(const std::string& file, int ranks) {
  WrittenKeys written;
  const Config config = with_grid(read_for_ranks(file, {}, ranks, written), ranks);
  RunPlan plan = make_run_plan(config, Purpose::training);
  require_within(plan, config);
  return plan;
}

TEST_F(RandomSupernets, AllHaveOneVerdictInPlanInDryRunAndAtTheStart) {
  int planned = 0, refused = 0;
  for (int number = 1; number <= random_supernets; ++number) {
    const RandomSupernet drawn(number);
    const std::string file = written(drawn, fmt::format("random-{}", number));
    const auto [paper, dry] = verdicts_on_paper(drawn, file);
    try {
      const RunPlan plan = plan_of_start(file, drawn.ranks());
      ++planned;
      ASSERT_EQ(paper.code, 0) << drawn.name() << '\n' << paper.text;
      for (int stage = 0; stage < plan.outline.stages; ++stage) {
        const std::string memory = memory_row(plan.most_memory(stage));
        EXPECT_THAT(paper.text, testing::HasSubstr(memory)) << drawn.name();
        EXPECT_THAT(dry.text, testing::HasSubstr(memory)) << drawn.name();
      }
    } catch (const Error& error) {
      ++refused;
      EXPECT_EQ(static_cast<int>(error.code), paper.code) << drawn.name();
      EXPECT_EQ(error.what(), paper.text) << drawn.name();
    }
    fs::remove(file);
  }
  EXPECT_EQ(planned + refused, random_supernets);
  EXPECT_GE(refused, 5);
}

}  // namespace
}  // namespace mindpipe
