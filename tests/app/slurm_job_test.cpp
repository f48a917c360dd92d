#include "app/run/slurm_job.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "app/run/run_lock.h"

namespace mindpipe {
namespace {

namespace fs = std::filesystem;

TEST(SlurmJob, IsOverWhereNoneOfItsTasksGoesOnOrNobodyKnowsIt) {
  for (const char* over :
       {"JobId=7 JobName=x JobState=NODE_FAIL Reason=None", "JobState=COMPLETED\nJobState=OUT_OF_MEMORY x",
        "slurm_load_jobs error: Invalid job id specified"})
    EXPECT_TRUE(is_over(over)) << over;
  for (const char* not_over :
       {"JobState=RUNNING", "JobState=COMPLETING x", "JobState=COMPLETED\nJobState=PENDING", "",
        "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"})
    EXPECT_FALSE(is_over(not_over)) << not_over;
}

TEST(SlurmJob, HoldsARunDirectoryFromAnotherHostUntilItIsOver) {
  const fs::path folder = fs::temp_directory_path() / ("mindpipe_slurm_job_" + std::to_string(getpid()));
  fs::create_directories(folder);
  std::ofstream(folder / "scontrol") << "#!/bin/sh\nshift 3\necho >>" << (folder / "asked").string()
                                     << "\n[ $1 = 17 ] && echo JobState=FAILED || echo JobState=RUNNING\n";
  fs::permissions(folder / "scontrol", fs::perms::owner_all);
  const std::string path = std::getenv("PATH");
  setenv("PATH", (folder.string() + ":" + path).c_str(), 1);
  LockHolder us = this_process(), holder = us;
  us.job = "19";
  us.cluster = holder.cluster = "here";
  holder.host = "elsewhere";
  for (const auto& [job, gone] :
       {std::pair("17", true), {"18", false}, {"19", false}, {"", false}, {"17; rm x", false}}) {
    holder.job = job;
    EXPECT_EQ(is_gone(holder, us), gone) << job;
  }
  holder.job = "17";
  for (const char* cluster : {"there", ""}) {
    holder.cluster = cluster;
    us.cluster = *cluster == '\0' ? "" : "here";
    EXPECT_FALSE(is_gone(holder, us)) << "17 is another job on another cluster, or on none that is known";
  }
  EXPECT_EQ(fs::file_size(folder / "asked"), 2) << "17 and 18, once each";
  setenv("PATH", path.c_str(), 1);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace mindpipe
