// thorough
#include "energy/nvml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <thread>

namespace mindpipe {
namespace {

using testing::HasSubstr;

std::string first_gpu() { return "GPU-2f3a0000-made"; }
std::string second_gpu() { return "GPU-2f3a0001-made"; }

std::unique_ptr<Nvml> opened(const std::vector<UsedGpu>& gpus, std::string* why = nullptr) {
  std::string reason;
  auto meter = Nvml::open(MINDPIPE_MADE_NVML, gpus, reason);
  if (why != nullptr) *why = reason;
  return meter;
}

struct Says {
  const char* name;
  explicit Says(const char* of, const char* value = "1") : name(of) { setenv(name, value, 1); }
  ~Says() { unsetenv(name); }
};

void sleep_for(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

TEST(Nvml, FindsTheEnergyOfTenSecondsWithinAPercent) {
  const auto meter = opened({{first_gpu()}});
  ASSERT_TRUE(meter != nullptr);
  const auto start = std::chrono::steady_clock::now();
  const double before = meter->joules();
  sleep_for(10);
  const double joules = meter->joules() - before;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  // Turns of a second are even over ten, whenever they begin.
  EXPECT_NEAR(joules, 325 * seconds, 0.01 * 325 * seconds + 75 * (seconds - 10));
}

TEST(Nvml, IntegratesPowerWhereNothingIsCounted) {
  const Says no_counter("MADE_NVML_HAS_NO_COUNTER");
  const auto meter = opened({{first_gpu()}, {second_gpu()}});
  ASSERT_TRUE(meter != nullptr);
  EXPECT_THAT(meter->describe(), HasSubstr("integrated"));
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 5; ++i) {
    sleep_for(0.1);
    meter->joules();
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_NEAR(meter->joules(), 2 * 300 * seconds, 0.02 * 600 * seconds);
}

/// Joules of a GPU of 300 W in a short while of which the meters claim a part.
double part_claimed(const std::vector<std::unique_ptr<Nvml>>& meters) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<double> before;
  for (const auto& meter : meters) before.push_back(meter->joules());
  sleep_for(0.2);
  double joules = 0;
  for (std::size_t i = 0; i < meters.size(); ++i) joules += meters[i]->joules() - before[i];
  return joules / 300 / std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::vector<std::unique_ptr<Nvml>> meters_of(const std::vector<UsedGpu>& jobs) {
  std::vector<std::unique_ptr<Nvml>> meters;
  for (const UsedGpu& job : jobs) meters.push_back(opened({job}));
  return meters;
}

TEST(Nvml, DividesAGpuAmongTheJobsThatComputeThere) {
  const Says by_power("MADE_NVML_HAS_NO_COUNTER"), three("MADE_NVML_PROCESSES", "3");
  const auto meters = meters_of({{first_gpu(), 2}, {first_gpu(), 1}});
  EXPECT_NEAR(part_claimed(meters), 1, 0.1);
  EXPECT_TRUE(meters[0]->is_divided());
  ASSERT_EQ(meters[0]->troubles().size(), 1u);
  EXPECT_THAT(meters[0]->troubles()[0],
              HasSubstr("GPU 0 is shared: 3 processes compute there, 2 of them this job's; what it takes is "
                        "divided equally among them, which is an estimate"));
  const Says four("MADE_NVML_PROCESSES", "4");
  const auto more = meters_of({{first_gpu(), 1}, {first_gpu(), 2}, {first_gpu(), 1}});
  EXPECT_NEAR(part_claimed(more), 1, 0.1);
}

TEST(Nvml, DividesAGpuAmongClientsOfAServer) {
  const Says by_power("MADE_NVML_HAS_NO_COUNTER"), server("MADE_NVML_PROCESSES", "1"),
      clients("MADE_NVML_CLIENTS", "2");
  EXPECT_LE(part_claimed(meters_of({{first_gpu()}, {first_gpu()}})), 1);
}

TEST(Nvml, ClaimsTheSmallerPartWhereAJobComesOrGoes) {
  const Says by_power("MADE_NVML_HAS_NO_COUNTER");
  const auto stays = meters_of({{first_gpu()}});
  EXPECT_NEAR(part_claimed(stays), 1, 0.1);
  EXPECT_FALSE(stays[0]->is_divided());
  double before = stays[0]->joules();
  {
    const Says two("MADE_NVML_PROCESSES", "2");
    const auto comes = meters_of({{first_gpu()}});
    EXPECT_NEAR(part_claimed(comes), 0.5, 0.1);
    EXPECT_NEAR((stays[0]->joules() - before) / 300, 0.1, 0.05);
    before = stays[0]->joules();
  }
  sleep_for(0.2);
  EXPECT_LE(stays[0]->joules() - before, 0.7 * 300 * 0.2);
  EXPECT_NEAR(part_claimed(stays), 1, 0.1);
}

TEST(Nvml, SaysThatNobodyTellsWhoElseIsThere) {
  const Says hides("MADE_NVML_HIDES_PROCESSES");
  const auto meter = opened({{first_gpu()}});
  meter->joules();
  ASSERT_EQ(meter->troubles().size(), 1u);
  EXPECT_THAT(meter->troubles()[0], HasSubstr("who computes on GPU 0 is not told by NVML"));
}

TEST(Nvml, GivesInstancesOfAGpuTheirSlices) {
  const Says by_power("MADE_NVML_HAS_NO_COUNTER"), mig("MADE_NVML_MIG");
  const auto meters = meters_of({{"MIG-77aa0000-made"}, {"MIG-77aa0001-made"}});
  EXPECT_EQ(meters[0]->describe(), "43 % of GPU 0 (MIG, estimated) (its power, integrated)");
  EXPECT_NEAR(part_claimed(meters), 1, 0.1);
  EXPECT_TRUE(meters[0]->is_divided());
  const Says two("MADE_NVML_PROCESSES", "2");
  EXPECT_NEAR(part_claimed(meters_of({{"MIG-77aa0000-made"}})), 3.0 / 14, 0.05);
}

TEST(Nvml, SaysWhatIsMissing) {
  std::string why;
  EXPECT_EQ(opened({{"GPU-7", 1, 5}}, &why), nullptr);
  EXPECT_THAT(
      why, HasSubstr("the rank that reads for this node may not read the meter of GPU-7, on which rank 5"));
  EXPECT_EQ(opened({}, &why), nullptr);
  EXPECT_THAT(why, HasSubstr("no rank of this node computes on a GPU"));
  EXPECT_EQ(Nvml::open("libno-such.so", {{first_gpu()}}, why), nullptr);
  EXPECT_THAT(why, HasSubstr("libno-such.so cannot be opened"));
  const Says refuses("MADE_NVML_REFUSES");
  EXPECT_EQ(opened({{first_gpu()}}, &why), nullptr);
  EXPECT_THAT(why, HasSubstr("nvmlInit answered 15"));
}

TEST(Nvml, SaysThatAGpuIsGone) {
  const Says goes("MADE_NVML_GOES");
  const auto meter = opened({{first_gpu()}});
  sleep_for(0.6);
  meter->joules();
  meter->joules();
  ASSERT_EQ(meter->troubles().size(), 1u);
  EXPECT_THAT(meter->troubles()[0], HasSubstr("GPU 0 no longer tells its energy"));
}

}  // namespace
}  // namespace mindpipe
