// thorough ranks: 1 2 3 4 5 6 8 10 12 16
#include "random_supernets.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "app/verdicts.h"
#include "runtime/checkpoints.h"

// A supernet that is drawn is run, on as many ranks as it has, as plan and --dry-run say: it trains to its
// end, or is refused with their sentence before it has a status.
namespace mindpipe {
namespace {

/// Only rank 0 plans.
Verdict verdict_of_rank_0(const World& world, Verdict verdict) {
  MPI_Bcast(&verdict.code, 1, MPI_INT, 0, world.comm);
  verdict.text = text_of_rank_0(world, verdict.text);
  return verdict;
}

TEST(RandomStarts, HaveTheVerdictOfPlanAndDryRun) {
  const World world = all_ranks();
  const SharedFolder folder;
  int ran = 0, refused = 0;
  for (int number = 1; number <= random_supernets; ++number) {
    const RandomSupernet drawn(number);
    if (drawn.ranks() != world.size) continue;
    const std::string directory = folder / fmt::format("random-{}", number), file = directory + ".yaml";
    if (world.rank == 0) std::ofstream(file) << drawn.text(directory);
    MPI_Barrier(world.comm);
    const Verdict on_paper = verdict_of_rank_0(world, verdicts_on_paper(drawn, file).plan);
    Arguments arguments;
    arguments.config = file;
    arguments.is_part = true;
    const Verdict run = verdict_of(arguments);
    EXPECT_EQ(run.code, on_paper.code) << drawn.name() << '\n' << run.text;
    ++(run.code == 0 ? ran : refused);
    if (run.code != 0) {
      EXPECT_EQ(run.text, on_paper.text) << drawn.name();
    }
    if (world.rank == 0) {
      EXPECT_EQ(bytes_of_file(directory + "/status.json").find("\"done\"") != std::string::npos,
                run.code == 0)
          << drawn.name();
      EXPECT_EQ(std::filesystem::exists(directory + "/status.json"), run.code == 0) << drawn.name();
      std::filesystem::remove_all(directory);
    }
    MPI_Barrier(world.comm);
  }
  if (world.rank != 0) return;
  EXPECT_GT(ran, 0);
  std::printf("%d ranks: %d supernets ran, %d were refused\n", world.size, ran, refused);
}

}  // namespace
}  // namespace mindpipe
