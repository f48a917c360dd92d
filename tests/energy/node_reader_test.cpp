// thorough
#include "energy/node_reader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "core/clock.h"
#include "energy/powercap.h"

namespace mindpipe {
namespace {

namespace fs = std::filesystem;

/// A meter of 100 W.
class MadeMeter : public Meter {
 public:
  explicit MadeMeter(bool own = false) : own_(own) {}
  double joules() override { return 100 * seconds_since(start_); }
  bool is_own() const override { return own_; }
  std::string describe() const override { return "made"; }

 private:
  std::int64_t start_ = now_ns();
  bool own_;
};

std::vector<std::unique_ptr<Meter>> meters(bool own = false) {
  std::vector<std::unique_ptr<Meter>> all;
  all.push_back(std::make_unique<MadeMeter>(own));
  return all;
}

cpu_set_t first_processors(int count) {
  cpu_set_t processors{};
  for (int processor = 0; processor < count; ++processor) CPU_SET(processor, &processors);
  return processors;
}

/// Processor time of a job that has `part` of what a node of 4 processors does.
NodeReader::Sharing sharing(double part) {
  NodeReader::Sharing shares{{}, first_processors(4), 4, 10};
  shares.times = [part, start = now_ns()] {
    const double all = 1 + 4 * seconds_since(start);
    return ProcessorTime{part * all, all, all};
  };
  return shares;
}

TEST(NodeReader, CountsUpToItsEnd) {
  NodeReader reader(meters(), sharing(1));
  const std::int64_t start = now_ns();
  usleep(1'300'000);
  EXPECT_GT(reader.newest().joules, 90);
  reader.stop();
  EXPECT_NEAR(reader.newest().joules, 100 * seconds_since(start), 3);
  EXPECT_EQ(reader.points().size(), 2u);
  EXPECT_FALSE(reader.shared());
}

TEST(NodeReader, ReadsAtOnceWhereAWindowBegins) {
  NodeReader reader(meters(), sharing(1));
  const std::int64_t start = now_ns();
  usleep(150'000);
  reader.begin_window();
  usleep(150'000);
  reader.stop();
  ASSERT_EQ(reader.points().size(), 3u);
  EXPECT_NEAR(static_cast<double>(reader.points()[1].ns - start) * 1e-9, 0.15, 0.05);
  EXPECT_NEAR(reader.points()[1].joules, 15, 5);
}

TEST(NodeReader, TwoJobsOnANodeClaimTheirParts) {
  NodeReader one(meters(), sharing(0.7)), other(meters(), sharing(0.3));
  const std::int64_t start = now_ns();
  usleep(300'000);
  one.stop();
  other.stop();
  const double all = 100 * seconds_since(start);
  EXPECT_TRUE(one.shared());
  EXPECT_NEAR(one.newest().joules, 0.7 * all, 0.05 * all);
  EXPECT_NEAR(one.newest().joules + other.newest().joules, all, 0.05 * all);
}

TEST(NodeReader, ThreeUnevenJobsOnANodeClaimNoMoreThanItTakes) {
  const std::int64_t start = now_ns();
  NodeReader large(meters(), sharing(0.955)), small(meters(), sharing(0.04)), tiny(meters(), sharing(0.005));
  usleep(300'000);
  large.stop();
  small.stop();
  tiny.stop();
  const double all = 100 * seconds_since(start);
  EXPECT_LE(large.newest().joules + small.newest().joules + tiny.newest().joules, all);
  EXPECT_GE(large.newest().joules, 0.9 * 0.955 * all);
  EXPECT_EQ(tiny.newest().joules, 0);
}

TEST(NodeReader, TheJobsOwnGpusAreItsOwn) {
  NodeReader reader(meters(true), sharing(0.5));
  const std::int64_t start = now_ns();
  usleep(200'000);
  reader.stop();
  EXPECT_NEAR(reader.newest().joules, 100 * seconds_since(start), 2);
}

TEST(NodeReader, TakesAThousandthOfAProcessorAtMost) {
  char name[] = "/tmp/powercapXXXXXX";
  const std::string root = mkdtemp(name);
  for (const char* zone : {"intel-rapl:0", "intel-rapl:1", "intel-rapl:0:0", "intel-rapl:1:0"}) {
    const std::string directory = root + "/" + zone;
    fs::create_directories(directory);
    std::ofstream(directory + "/name") << (std::string(zone).size() > 12 ? "dram" : "package-0");
    std::ofstream(directory + "/max_energy_range_uj") << "262143328850";
    std::ofstream(directory + "/energy_uj") << "1000";
  }
  // A machine that others fill may take a millisecond for microseconds of work: one of three attempts is to
  // hold.
  double share = 1;
  for (int attempt = 0; attempt < 3 && share > 0.001; ++attempt) {
    std::string why;
    std::vector<std::unique_ptr<Meter>> all;
    all.push_back(Powercap::open(root, why));
    ASSERT_TRUE(all.front() != nullptr) << why;
    NodeReader reader(std::move(all), {{getpid()}, first_processors(4), 4, 10});
    const std::int64_t start = now_ns();
    usleep(4'200'000);
    reader.stop();
    share = reader.own_seconds() / seconds_since(start);
  }
  fs::remove_all(root);
  RecordProperty("microseconds_a_second", static_cast<int>(share * 1e6));
  EXPECT_GT(share, 0);
  EXPECT_LE(share, 0.001);
}

TEST(ProcessorTime, IsThatOfTheProcessesAndOfAll) {
  const std::string root = testing::TempDir() + "proc";
  fs::create_directories(root + "/17");
  std::ofstream(root + "/stat") << "cpu  100 20 30 4000 50 6 7 0 0 0\n"
                                   "cpu0 60 10 10 2000 50 6 7 0 0 0\n"
                                   "cpu1 40 10 20 2000 0 0 0 0 0 0\n"
                                   "intr 900 1 2 3\n";
  std::ofstream(root + "/17/stat") << "17 (a b) c) S 1 1 1 0 -1 4194304 100 0 0 0 40 2 0 0 20 0 1 0\n";
  const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  cpu_set_t second{};
  CPU_SET(1, &second);
  const ProcessorTime times = processor_time({17, 99}, second, root);
  EXPECT_DOUBLE_EQ(times.job, 42 / ticks);
  EXPECT_DOUBLE_EQ(times.node, 163 / ticks);
  EXPECT_DOUBLE_EQ(times.there, 70 / ticks);
  fs::remove_all(root);
}

struct Point {
  std::int64_t ns = 0;
};

TEST(Curve, KeepsAFewPointsOverAllOfItsTime) {
  Curve<Point> curve(8);
  for (std::int64_t at = 0; at < 10'000; ++at) curve.add({at});
  EXPECT_LT(curve.points().size(), 8u);
  EXPECT_GE(curve.points().size(), 4u);
  const std::int64_t apart = curve.points()[1].ns;
  for (std::size_t i = 0; i < curve.points().size(); ++i)
    EXPECT_EQ(curve.points()[i].ns, apart * static_cast<std::int64_t>(i));
  EXPECT_GT(curve.points().back().ns, 5'000);
}

}  // namespace
}  // namespace mindpipe
