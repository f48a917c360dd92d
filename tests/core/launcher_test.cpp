#include "core/launcher.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace mindpipe {
namespace {

using Environment = std::vector<std::pair<std::string, std::string>>;

/// The launch that a process sees which has these variables, and no others of any launcher.
Launch launch_in(const Environment& variables) {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK",
                           "PMI_SIZE", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_NUM_TASKS"})
    unsetenv(name);
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  return launch();
}

void expect(const Launch& launch, bool launched, int rank, int ranks) {
  EXPECT_EQ(launch.launched, launched);
  EXPECT_EQ(launch.rank, rank);
  EXPECT_EQ(launch.ranks, ranks);
}

TEST(Launch, WhoeverStartsByHandIsAlone) { expect(launch_in({}), false, 0, 1); }

TEST(Launch, IsToldByMpirunAndBySrunWithAndWithoutPmix) {
  expect(launch_in({{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "8"}}), true, 3, 8);
  const Environment step{{"SLURM_NTASKS", "8"}, {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "2"}};
  expect(launch_in(step), true, 2, 4);
  Environment with_pmix = step;
  with_pmix.emplace_back("PMIX_RANK", "2");
  expect(launch_in(with_pmix), true, 2, 4);
  expect(launch_in({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}), true, 1, 2);
  expect(launch_in({{"PMIX_RANK", "1"}}), true, 1, 0);
}

TEST(Launch, ABatchScriptLaunchesNothingByItself) {
  expect(launch_in({{"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "0"}}), false, 0, 1);
}

TEST(Launch, MpirunWithinAStepOfSlurmCountsItsOwnRanks) {
  expect(launch_in({{"SLURM_STEP_NUM_TASKS", "1"},
                    {"SLURM_PROCID", "0"},
                    {"OMPI_COMM_WORLD_RANK", "5"},
                    {"OMPI_COMM_WORLD_SIZE", "6"}}),
         true, 5, 6);
}

}  // namespace
}  // namespace mindpipe
