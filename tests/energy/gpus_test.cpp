#include "energy/gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "energy/nvml_library.h"

namespace mindpipe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Four made GPUs.
class Gpus : public testing::Test {
 protected:
  Gpus() { setenv("MADE_NVML_GPUS", "4", 1); }
  ~Gpus() override {
    for (const char* name :
         {"MADE_NVML_GPUS", "MADE_NVML_MIG", "MADE_NVML_FENCE", "MADE_NVML_CAP", "MADE_NVML_HIDES_CAPS"})
      unsetenv(name);
  }
  static std::vector<std::string> seen(const std::optional<std::string>& visible) {
    std::string why;
    const auto nvml = NvmlLibrary::open(MINDPIPE_MADE_NVML, why);
    return visible_gpus(*nvml, visible);
  }
  static NamedGpu named(int number, const std::optional<std::string>& visible,
                        const std::string& place = "") {
    return named_gpu(MINDPIPE_MADE_NVML, {number, visible, place});
  }
  const std::string gpu_[4] = {"GPU-2f3a0000-made", "GPU-2f3a0001-made", "GPU-90bc0002-made",
                               "GPU-90bc0003-made"};
};

TEST_F(Gpus, ThatCudaShowsAreAllWhereNothingIsSaid) {
  EXPECT_THAT(seen(std::nullopt), ElementsAre(gpu_[0], gpu_[1], gpu_[2], gpu_[3]));
}

TEST_F(Gpus, ThatCudaShowsAreNamedByNumbersAndIds) {
  EXPECT_THAT(seen("2,0"), ElementsAre(gpu_[2], gpu_[0]));
  EXPECT_THAT(seen(" 3 , 1"), ElementsAre(gpu_[3], gpu_[1]));
  EXPECT_THAT(seen(gpu_[1] + ",0"), ElementsAre(gpu_[1], gpu_[0]));
  EXPECT_THAT(seen("GPU-90bc0003,GPU-2f3a0000"), ElementsAre(gpu_[3], gpu_[0]));
}

TEST_F(Gpus, ThatCudaShowsEndBeforeTheFirstThatIsNone) {
  for (const char* none :
       {"", "-1", "NoDevFiles", "4", "GPU-2f3a", "GPU-77", "MIG-77aa0000-made", ",0", "1x"})
    EXPECT_THAT(seen(none), IsEmpty()) << none;
  EXPECT_THAT(seen("1,-1,0"), ElementsAre(gpu_[1]));
  EXPECT_THAT(seen("1,9,0"), ElementsAre(gpu_[1]));
  EXPECT_THAT(seen("1,,0"), ElementsAre(gpu_[1]));
  EXPECT_THAT(seen("1,GPU-2f3a,0"), ElementsAre(gpu_[1]));
  EXPECT_THAT(seen("1,0,1"), ElementsAre(gpu_[1], gpu_[0]));
}

TEST_F(Gpus, ThatCudaShowsAreOneInstanceAtMost) {
  setenv("MADE_NVML_MIG", "1", 1);
  EXPECT_THAT(seen("MIG-77aa0001-made,MIG-77aa0000-made"), ElementsAre("MIG-77aa0001-made"));
}

TEST_F(Gpus, OfRanksGoByWhatEachRankSees) {
  // A GPU a rank, as Slurm gives them, each with its own list; fewer GPUs than ranks begin again.
  EXPECT_EQ(named(0, "3").uuid, gpu_[3]);
  EXPECT_EQ(named(5, "3").uuid, gpu_[3]);
  EXPECT_EQ(named(1, "2,0").uuid, gpu_[0]);
  EXPECT_EQ(named(2, "2,0").uuid, gpu_[2]);
  EXPECT_EQ(named(1, std::nullopt).uuid, gpu_[1]);
  setenv("MADE_NVML_FENCE", "2", 1);
  EXPECT_EQ(named(0, "0").uuid, gpu_[2]);
}

TEST_F(Gpus, OfRanksGoByTheirPlaceWhereCudaSaysIt) {
  EXPECT_EQ(named(0, std::nullopt, "0000:13:00.0").uuid, gpu_[3]);
  EXPECT_EQ(named(0, "0,1", "00000000:11:00.0").uuid, gpu_[1]);
  EXPECT_EQ(named(0, "nonsense", "0000:11:00.0").uuid, gpu_[1]);
  setenv("MADE_NVML_MIG", "1", 1);
  EXPECT_EQ(named(0, "MIG-77aa0001-made", "0000:10:00.0").uuid, "MIG-77aa0001-made");
  EXPECT_EQ(named(0, std::nullopt, "0000:10:00.0").uuid, "MIG-77aa0000-made");
}

TEST_F(Gpus, ThatAreNoneAreNamedInASentence) {
  EXPECT_EQ(named(0, "-1").uuid, "");
  EXPECT_THAT(named(0, "-1").why, HasSubstr("CUDA_VISIBLE_DEVICES is \"-1\", which names no GPU that"));
  setenv("MADE_NVML_GPUS", "0", 1);
  EXPECT_THAT(named(0, std::nullopt).why, HasSubstr("knows no GPU that this user may reach"));
  EXPECT_THAT(named_gpu("libno-such.so", {0, {}, {}}).why, HasSubstr("cannot be opened"));
}

TEST_F(Gpus, TellThePowerThatIsAllowed) {
  EXPECT_THAT(gpu_caps(MINDPIPE_MADE_NVML, {{gpu_[0]}, {gpu_[3]}}),
              ElementsAre("GPU 0: 700 W", "GPU 3: 700 W"));
  EXPECT_THAT(gpu_caps(MINDPIPE_MADE_NVML, {{"GPU-7"}}),
              ElementsAre("GPU-7: not known: this rank may not reach it"));
  setenv("MADE_NVML_HIDES_CAPS", "1", 1);
  EXPECT_THAT(gpu_caps(MINDPIPE_MADE_NVML, {{gpu_[0]}}), ElementsAre("GPU 0: not known: NVML answered 4"));
  EXPECT_THAT(gpu_caps("libno-such.so", {{gpu_[0]}}),
              ElementsAre("GPUs: not known: libno-such.so cannot be opened; NVIDIA's driver brings it"));
}

}  // namespace
}  // namespace mindpipe
