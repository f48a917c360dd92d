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

std::unique_ptr<Nvml> opened(const Nvml::Wanted& wanted, std::string* why = nullptr) {
  std::string reason;
  auto meter = Nvml::open(MINDPIPE_MADE_NVML, wanted, reason);
  if (why != nullptr) *why = reason;
  return meter;
}

struct Says {
  const char* name;
  explicit Says(const char* of) : name(of) { setenv(name, "1", 1); }
  ~Says() { unsetenv(name); }
};

void sleep_for(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

TEST(Nvml, FindsTheEnergyOfTenSecondsWithinAPercent) {
  const auto meter = opened({"", 1});
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
  const auto meter = opened({"0,1", 2});
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

TEST(Nvml, TakesTheGpusThatTheJobSees) {
  EXPECT_EQ(opened({"1", 1})->describe(), "GPU 1");
  EXPECT_EQ(opened({"GPU-2f3a", 1})->describe(), "GPU GPU-2f3a");
  EXPECT_EQ(opened({"", 2})->describe(), "GPU 0, GPU 1");
  EXPECT_THAT(opened({"", 2})->caps(), testing::ElementsAre("GPU 0: 700 W", "GPU 1: 700 W"));
}

TEST(Nvml, SaysWhatIsMissing) {
  std::string why;
  EXPECT_EQ(opened({"7", 1}, &why), nullptr);
  EXPECT_THAT(why, HasSubstr("GPU 7 has no meter that this user may read"));
  EXPECT_EQ(Nvml::open("libno-such.so", {}, why), nullptr);
  EXPECT_THAT(why, HasSubstr("libno-such.so cannot be opened"));
  const Says refuses("MADE_NVML_REFUSES");
  EXPECT_EQ(opened({"", 1}, &why), nullptr);
  EXPECT_THAT(why, HasSubstr("nvmlInit answered 15"));
}

TEST(Nvml, SaysThatAGpuIsGone) {
  const Says goes("MADE_NVML_GOES");
  const auto meter = opened({"", 1});
  sleep_for(0.6);
  meter->joules();
  meter->joules();
  ASSERT_EQ(meter->troubles().size(), 1u);
  EXPECT_THAT(meter->troubles()[0], HasSubstr("GPU 0 no longer tells its energy"));
}

}  // namespace
}  // namespace mindpipe
