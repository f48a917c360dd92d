#include "core/machine_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mindpipe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(MachineMemory, IsLimitedFromOnesOwnGroupToTheRoot) {
  EXPECT_THAT(
      limit_files("0::/slurm/job_7/step_0\n"),
      ElementsAre("/sys/fs/cgroup/slurm/job_7/step_0/memory.max", "/sys/fs/cgroup/slurm/job_7/memory.max",
                  "/sys/fs/cgroup/slurm/memory.max", "/sys/fs/cgroup/memory.max"));
  EXPECT_THAT(limit_files("0::/\n"), ElementsAre("/sys/fs/cgroup/memory.max"));
}

TEST(MachineMemory, IsLimitedByTheMemoryControllerOfTheFirstVersionAlone) {
  EXPECT_THAT(
      limit_files(
          "12:cpuset,memory:/job_7\n3:memory_of_others:/x\n2:cpu,cpuacct:/job_7\n1:name=systemd:/user\n"),
      ElementsAre("/sys/fs/cgroup/memory/job_7/memory.limit_in_bytes",
                  "/sys/fs/cgroup/memory/memory.limit_in_bytes"));
  EXPECT_THAT(limit_files("nonsense\n:\n\n"), IsEmpty());
}

TEST(MachineMemory, IsNotLimitedByMaxNorByMoreThanThereCanBe) {
  EXPECT_EQ(limit_in("8589934592\n"), std::int64_t{8} << 30);
  EXPECT_EQ(limit_in("max\n"), 0);
  EXPECT_EQ(limit_in("9223372036854771712\n"), 0);
  EXPECT_EQ(limit_in(""), 0);
}

TEST(MachineMemory, IsKnownHere) {
  const MemoryLimit here = memory_here();
  EXPECT_GT(here.bytes, 0);
  EXPECT_FALSE(here.name.empty());
}

}  // namespace
}  // namespace mindpipe
