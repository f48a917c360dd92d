#include "app/train/job_end.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "app/run/slurm_job.h"

namespace mindpipe {
namespace {

namespace fs = std::filesystem;

/// A time so many seconds from now, as scontrol writes it.
std::string in_seconds(int seconds) {
  const std::time_t end = std::time(nullptr) + seconds;
  char text[64] = "";
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", std::localtime(&end));
  return text;
}

TEST(JobEnd, IsReadOutOfWhatScontrolPrints) {
  const auto now = static_cast<double>(std::time(nullptr));
  const std::string before = "JobId=7 JobName=mindpipe StartTime=" + in_seconds(-60);
  EXPECT_NEAR(*seconds_to_end_in(before + " EndTime=" + in_seconds(5400) + " Deadline=N/A", now), 5400, 1);
  EXPECT_LT(*seconds_to_end_in(before + " EndTime=" + in_seconds(-5), now), 0);
  for (const char* none : {" EndTime=Unknown", " EndTime=", "", " NoEndTime=2026-11-26T10:00:00"})
    EXPECT_FALSE(seconds_to_end_in(before + none, now)) << none;
}

TEST(JobEnd, IsAskedOfScontrolInAJobOfSlurmAlone) {
  const fs::path folder = fs::temp_directory_path() / ("mindpipe_scontrol_" + std::to_string(getpid()));
  fs::create_directories(folder);
  std::ofstream(folder / "scontrol") << "#!/bin/sh\necho \"$*\" >" << (folder / "asked").string()
                                     << "\necho \"JobId=7 EndTime=" << in_seconds(600) << " x=y\"\n";
  fs::permissions(folder / "scontrol", fs::perms::owner_all);
  const std::string path = std::getenv("PATH");
  setenv("PATH", (folder.string() + ":" + path).c_str(), 1);
  unsetenv("SLURM_JOB_ID");
  EXPECT_FALSE(seconds_to_job_end());
  setenv("SLURM_JOB_ID", "7; rm x", 1);
  EXPECT_FALSE(seconds_to_job_end());
  EXPECT_FALSE(fs::exists(folder / "asked"));
  setenv("SLURM_JOB_ID", "7", 1);
  const auto seconds = seconds_to_job_end();
  setenv("SLURM_ARRAY_JOB_ID", "5", 1);
  EXPECT_EQ(slurm_job(), "7");
  setenv("SLURM_ARRAY_TASK_ID", "2", 1);
  EXPECT_EQ(slurm_job(), "5_2") << "the other tasks may have the array's id for their job's";
  for (const char* name : {"SLURM_JOB_ID", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID"}) unsetenv(name);
  setenv("PATH", path.c_str(), 1);
  ASSERT_TRUE(seconds);
  EXPECT_NEAR(*seconds, 600, 5);
  std::string asked;
  std::getline(std::ifstream(folder / "asked"), asked);
  EXPECT_EQ(asked, "--oneliner show job 7");
  fs::remove_all(folder);
}

}  // namespace
}  // namespace mindpipe
