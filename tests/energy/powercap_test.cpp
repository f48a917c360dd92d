#include "energy/powercap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "energy/made_powercap.h"

namespace mindpipe {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::unique_ptr<Powercap> opened(const MadePowercap& tree) {
  std::string why;
  auto meter = Powercap::open(tree.root, why);
  EXPECT_TRUE(meter != nullptr) << why;
  return meter;
}

/// Two packages with memory and cores, seen twice as in sysfs, a second way to the first one, and the
/// platform.
MadePowercap two_packages() {
  MadePowercap tree;
  tree.zone("intel-rapl:0", "package-0", 1'000'000);
  tree.zone("intel-rapl:1", "package-1", 2'000'000);
  for (const char* place : {"", "intel-rapl:0/"}) {
    tree.zone(std::string(place) + "intel-rapl:0:0", "core", 500'000);
    tree.zone(std::string(place) + "intel-rapl:0:1", "dram", 300'000);
  }
  tree.zone("intel-rapl:1:0", "dram", 400'000);
  tree.zone("intel-rapl:2", "psys", 9'000'000);
  tree.zone("intel-rapl-mmio:0", "package-0", 1'000'000);
  return tree;
}

TEST(Powercap, CountsPackagesAndMemoryOnceAndNothingTwice) {
  const MadePowercap tree = two_packages();
  const auto meter = opened(tree);
  EXPECT_EQ(meter->joules(), 0);
  tree.count("intel-rapl:0", 11'000'000);   // 10 J
  tree.count("intel-rapl:1", 5'000'000);    // 3 J
  tree.count("intel-rapl:0:0", 9'500'000);  // cores of package 0: in it
  tree.count("intel-rapl:0:1", 1'300'000);  // 1 J
  tree.count("intel-rapl:0/intel-rapl:0:1", 1'300'000);
  tree.count("intel-rapl:1:0", 900'000);   // 0.5 J
  tree.count("intel-rapl:2", 30'000'000);  // the platform: all of it
  tree.count("intel-rapl-mmio:0", 11'000'000);
  EXPECT_DOUBLE_EQ(meter->joules(), 14.5);
  EXPECT_TRUE(meter->troubles().empty());
}

TEST(Powercap, CountsThePlatformWhereItIsAllThereIs) {
  MadePowercap tree;
  tree.zone("intel-rapl:0", "psys", 7);
  const auto meter = opened(tree);
  tree.count("intel-rapl:0", 2'000'007);
  EXPECT_DOUBLE_EQ(meter->joules(), 2);
}

TEST(Powercap, FollowsACounterThatBeginsAnew) {
  MadePowercap tree;
  tree.zone("intel-rapl:0", "package-0", 9'000'000, 10'000'000);
  const auto meter = opened(tree);
  tree.count("intel-rapl:0", 9'900'000);
  EXPECT_DOUBLE_EQ(meter->joules(), 0.9);
  tree.count("intel-rapl:0", 400'000);
  EXPECT_DOUBLE_EQ(meter->joules(), 1.4);
  tree.count("intel-rapl:0", 1'400'000);
  EXPECT_DOUBLE_EQ(meter->joules(), 2.4);
}

TEST(Powercap, TakesACounterThatIsSetBackForNoWrap) {
  MadePowercap tree;
  tree.zone("intel-rapl:0", "package-0", 20'000'000'000, 262'000'000'000);
  const auto meter = opened(tree);
  tree.count("intel-rapl:0", 20'001'000'000);
  EXPECT_DOUBLE_EQ(meter->joules(), 1);
  tree.count("intel-rapl:0", 500'000);
  EXPECT_DOUBLE_EQ(meter->joules(), 1.5);
  ASSERT_EQ(meter->troubles().size(), 1u);
  EXPECT_THAT(meter->troubles()[0], HasSubstr("was set back to 0"));
}

TEST(Powercap, SaysThatACounterHasNotMovedInASecond) {
  const MadePowercap tree = two_packages();
  const auto meter = opened(tree);
  tree.count("intel-rapl:0", 2'000'000);
  tree.count("intel-rapl:0:1", 400'000);
  tree.count("intel-rapl:1:0", 500'000);
  meter->joules();
  EXPECT_TRUE(meter->troubles().empty());
  usleep(1'010'000);
  meter->joules();
  ASSERT_EQ(meter->troubles().size(), 1u);
  EXPECT_THAT(meter->troubles()[0], HasSubstr("package-1"));
  EXPECT_THAT(meter->troubles()[0], HasSubstr("has not moved"));
}

TEST(Powercap, IsReadOftenNearTheEndOfItsRange) {
  MadePowercap tree;
  tree.zone("intel-rapl:0", "package-0", 0, 100'000'000);
  const auto meter = opened(tree);
  EXPECT_EQ(meter->seconds_to_next(), 1);
  usleep(10'000);
  tree.count("intel-rapl:0", 99'000'000);
  meter->joules();
  EXPECT_LT(meter->seconds_to_next(), 0.5);
}

TEST(Powercap, SaysThatACounterStandsStillOrIsGone) {
  const MadePowercap tree = two_packages();
  const auto meter = opened(tree);
  for (int reading = 1; reading <= 12; ++reading) {
    tree.count("intel-rapl:0", 1'000'000 + 1'000'000ull * reading);
    tree.count("intel-rapl:0:1", 300'000 + 10'000ull * reading);
    tree.count("intel-rapl:1:0", 400'000 + 10'000ull * reading);
    if (reading == 5) fs::remove(tree.root + "/intel-rapl:0/energy_uj");
    meter->joules();
    if (reading == 5) fs::remove_all(tree.root + "/intel-rapl:0");
  }
  // 4 readings of package 0 before it went, 12 of each memory; package 1 never moved.
  EXPECT_NEAR(meter->joules(), 4 + 2 * 0.12, 1e-9);
  ASSERT_EQ(meter->troubles().size(), 2u);
  EXPECT_THAT(meter->troubles()[0], HasSubstr("package-0"));
  EXPECT_THAT(meter->troubles()[0], HasSubstr("can no longer be read"));
  EXPECT_THAT(meter->troubles()[1], HasSubstr("package-1"));
  EXPECT_THAT(meter->troubles()[1], HasSubstr("stands still"));
}

TEST(Powercap, NamesTheFileAndTheRightThatAreMissing) {
  MadePowercap tree;
  tree.zone("intel-rapl:0", "package-0", 0);
  tree.put("intel-rapl:0", "energy_uj", "none");
  const std::string counter = tree.root + "/intel-rapl:0/energy_uj";
  std::string why;
  EXPECT_EQ(Powercap::open(tree.root, why), nullptr);
  EXPECT_THAT(why, HasSubstr(counter + " cannot be read (no number)"));

  tree.count("intel-rapl:0", 0);
  fs::permissions(tree.root, fs::perms::all);
  fs::permissions(counter, fs::perms::none);
  // Root may read everything, so the test becomes somebody else for a moment.
  constexpr uid_t nobody = 65534;
  const uid_t user = geteuid();
  if (user == 0 && seteuid(nobody) != 0) GTEST_SKIP() << "root may not become somebody else here";
  EXPECT_EQ(Powercap::open(tree.root, why), nullptr);
  if (user == 0) {
    ASSERT_EQ(seteuid(user), 0);
  }
  EXPECT_THAT(why, HasSubstr(counter + " cannot be read (Permission denied): this user needs the right to"));
}

TEST(Powercap, SaysThatAZoneWithoutANameIsLeftOut) {
  const MadePowercap tree = two_packages();
  fs::remove(tree.root + "/intel-rapl:1/name");
  tree.put("intel-rapl:0:1", "name", "");
  const auto meter = opened(tree);
  EXPECT_EQ(meter->describe(), "package-0, dram of intel-rapl:1:0");
  ASSERT_EQ(meter->troubles().size(), 2u);
  EXPECT_THAT(meter->troubles()[0], HasSubstr(tree.root + "/intel-rapl:0:1/name is empty: what is counted"));
  EXPECT_THAT(
      meter->troubles()[1],
      HasSubstr(tree.root + "/intel-rapl:1/name cannot be read (No such file or directory): what is"));

  MadePowercap alone;
  alone.put("intel-rapl:0", "energy_uj", "5");
  std::string why;
  EXPECT_EQ(Powercap::open(alone.root, why), nullptr);
  EXPECT_THAT(why, HasSubstr("/intel-rapl:0/name cannot be read"));
  alone.zone("intel-rapl:0", "battery", 5);
  EXPECT_EQ(Powercap::open(alone.root, why), nullptr);
  EXPECT_THAT(why, HasSubstr("/intel-rapl:0 has the name battery, which no counter of packages"));
}

TEST(Powercap, SaysThatThereIsNoCounter) {
  std::string why;
  EXPECT_EQ(Powercap::open("/tmp/no-such-tree", why), nullptr);
  EXPECT_THAT(why, HasSubstr("/tmp/no-such-tree has no counter of energy"));
}

TEST(PowercapCaps, TellThePowerThatIsAllowed) {
  const MadePowercap tree = two_packages();
  tree.put("intel-rapl:0", "constraint_0_name", "long_term");
  tree.put("intel-rapl:0", "constraint_0_power_limit_uw", "225000000");
  tree.put("intel-rapl:0", "constraint_1_name", "short_term");
  tree.put("intel-rapl:0", "constraint_1_power_limit_uw", "270000000");
  tree.put("intel-rapl:2", "enabled", "0");
  tree.put("intel-rapl:2", "constraint_0_power_limit_uw", "500000000");
  tree.put("intel-rapl:1", "constraint_0_power_limit_uw", "unlimited");
  fs::remove(tree.root + "/intel-rapl:0/energy_uj");  // nobody needs it here
  EXPECT_THAT(
      powercap_caps(tree.root),
      testing::ElementsAre("package-0: 225 W (long_term)", "package-0: 270 W (short_term)",
                           "dram of intel-rapl:0:1: no limit is said",
                           HasSubstr("package-1: not known: " + tree.root +
                                     "/intel-rapl:1/constraint_0_power_limit_uw cannot be read (no number)"),
                           "dram of intel-rapl:1:0: no limit is said", "psys: 500 W (limit, switched off)"));
}

TEST(PowercapCaps, NameTheFileAndTheRightThatAreMissing) {
  EXPECT_THAT(powercap_caps("/tmp/no-such-tree"),
              testing::ElementsAre("processors: not known: /tmp/no-such-tree has no zone of RAPL"));
  const MadePowercap tree;
  tree.zone("intel-rapl:0", "package-0", 0);
  tree.put("intel-rapl:0", "constraint_0_power_limit_uw", "225000000");
  const std::string limit = tree.root + "/intel-rapl:0/constraint_0_power_limit_uw";
  fs::permissions(tree.root, fs::perms::all);
  fs::permissions(limit, fs::perms::none);
  constexpr uid_t nobody = 65534;
  const uid_t user = geteuid();
  if (user == 0 && seteuid(nobody) != 0) GTEST_SKIP() << "root may not become somebody else here";
  const std::vector<std::string> caps = powercap_caps(tree.root);
  if (user == 0) {
    ASSERT_EQ(seteuid(user), 0);
  }
  EXPECT_THAT(
      caps, testing::ElementsAre(HasSubstr(limit + " cannot be read (Permission denied): this user needs")));
}

}  // namespace
}  // namespace mindpipe
