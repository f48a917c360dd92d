#include "app/energy/account.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "app/energy/energy_text.h"

namespace mindpipe {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr double second = 1e9;
constexpr Powers estimate{340, 150, 60, 200};

/// A rank that is busy for a changing share of two-second windows, and waits for the rest.
RankEnergy made_rank(int rank, int windows) {
  RankEnergy made;
  double busy = 0;
  for (int i = 0; i <= windows; ++i) {
    made.work.push_back({static_cast<std::int64_t>(2 * second * i), busy});
    busy += 2 * (0.7 + 0.2 * std::sin(i * (rank + 1.0)));
  }
  busy = made.work.back().busy;
  made.end_ns = made.work.back().ns;
  made.spent.forward = static_cast<std::int64_t>(busy / 3 * second);
  made.spent.backward = static_cast<std::int64_t>(2 * busy / 3 * second);
  made.spent.wait_pipeline = made.end_ns - made.spent.work();
  return made;
}

/// Four ranks of a node whose meter sees 690 W of a busy rank and 410 W of a waiting one.
std::vector<RankEnergy> metered_ranks(int windows) {
  std::vector<RankEnergy> ranks;
  for (int rank = 0; rank < 4; ++rank) ranks.push_back(made_rank(rank, windows));
  ranks[0].metered = true;
  for (int i = 0; i <= windows; ++i) {
    double joules = 0;
    for (const RankEnergy& rank : ranks)
      joules += 690 * rank.work[i].busy + 410 * (2.0 * i - rank.work[i].busy);
    ranks[0].energy.push_back({static_cast<std::int64_t>(2 * second * i), joules});
  }
  ranks[0].joules = ranks[0].energy.back().joules;
  return ranks;
}

/// A rank whose evaluations come after each hundred steps, with notes of it and readings as a run takes them.
RankEnergy noted_run(double hours) {
  RankEnergy rank;
  Curve<WorkPoint> work;
  double now = 0, busy = 0, joules = 0, window = 0;
  work.add({0, 0});
  rank.energy.push_back({0, 0});
  const auto spend = [&](double seconds, double share, TimeSpent& spent) {
    now += seconds;
    busy += share * seconds;
    joules += 690 * share * seconds + 410 * (1 - share) * seconds;
    spent.forward += std::llround(share * seconds * second);
    spent.wait_pipeline += std::llround((1 - share) * seconds * second);
    const bool is_kept = work.add({std::llround(now * second), busy});
    if (!is_kept || now - window < 2) return;
    rank.energy.push_back({std::llround(now * second), joules});
    window = now;
  };
  for (int step = 1; now < hours * 3600; ++step) {
    spend(1 + 0.01 * std::sin(step), 0.9 + 0.005 * std::sin(3.0 * step), rank.spent);
    if (step % 100 == 0) spend(20, 0.6, rank.evaluated);
  }
  rank.metered = true;
  rank.joules = joules;
  rank.end_ns = std::llround(now * second);
  rank.work = work.points();
  rank.work.push_back({rank.end_ns, busy});
  rank.energy.push_back({rank.end_ns, joules});
  return rank;
}

TEST(EnergyAccount, TakesNoWindowThatBeginsOrEndsBetweenNotesOfTheWork) {
  for (const double hours : {0.1, 0.5, 1.0, 3.0, 10.0, 24.0, 100.0}) {
    const EnergyAccount account = account_of({noted_run(hours)}, {1, 1, 1, 1}, estimate);
    EXPECT_TRUE(account.powers.fitted || hours > 3) << hours;
    EXPECT_GT(account.powers.windows, 50u) << hours;
    if (!account.powers.fitted) continue;
    EXPECT_NEAR(account.powers.busy, 690, 0.01 * 690) << hours;
    EXPECT_NEAR(account.powers.rest, 410, 0.01 * 410) << hours;
  }
}

TEST(EnergyAccount, GivesKnownPowersBackAndPhasesThatAddUp) {
  const std::vector<RankEnergy> ranks = metered_ranks(60);
  const EnergyAccount account = account_of(ranks, {1, 1, 4, 1}, estimate);
  EXPECT_FALSE(account.estimated);
  EXPECT_TRUE(account.powers.fitted);
  EXPECT_NEAR(account.powers.busy, 690, 0.03 * 690);
  EXPECT_NEAR(account.powers.rest, 410, 0.03 * 410);
  EXPECT_DOUBLE_EQ(account.joules, ranks[0].joules);
  EXPECT_NEAR(account.phases.total(), account.joules, 0.02 * account.joules);
  EXPECT_NEAR(account.phases.backward, 2 * account.phases.forward, 1e-3 * account.phases.backward);
}

TEST(EnergyAccount, AddsUpWhereAFewWindowsTellNothing) {
  const EnergyAccount account = account_of(metered_ranks(3), {1, 1, 4, 1}, estimate);
  EXPECT_FALSE(account.powers.fitted);
  EXPECT_NEAR(account.phases.total(), account.joules, 0.02 * account.joules);
}

TEST(EnergyAccount, SaysWhatIsEstimated) {
  std::vector<RankEnergy> ranks = metered_ranks(60);
  EXPECT_FALSE(account_of(ranks, {1, 1, 4, 1}, estimate).estimated);
  ranks[0].metered = false;
  const EnergyAccount account = account_of(ranks, {1, 1, 4, 1}, estimate);
  EXPECT_TRUE(account.estimated);
  EXPECT_NEAR(account.phases.total(), account.joules, 1e-6 * account.joules);
  const EnergyCounts counts{10, 40, 400, "token", account.joules, account.estimated};
  EXPECT_THAT(energy_text({}, account, counts), HasSubstr("energy (estimated): "));
  EXPECT_THAT(energy_json({}, account, counts), HasSubstr("\"estimated\": true"));
}

TEST(EnergyAccount, NamesWhomTheOthersWaitFor) {
  std::vector<RankEnergy> ranks = metered_ranks(60);
  for (RankEnergy& rank : ranks) {
    rank.spent = {};
    rank.spent.forward = static_cast<std::int64_t>(60 * second);
    rank.spent.wait_pipeline = static_cast<std::int64_t>(60 * second);
  }
  EXPECT_EQ(account_of(ranks, {1, 1, 4, 1}, estimate).waited_for.who, "");
  ranks[2].spent.forward = static_cast<std::int64_t>(90 * second);
  const WaitedFor stage = account_of(ranks, {1, 1, 4, 1}, estimate).waited_for;
  EXPECT_EQ(stage.who, "rank 2 (stage 2)");
  EXPECT_GT(stage.joules, 0);
  EXPECT_EQ(account_of(ranks, {1, 4, 1, 1}, estimate).waited_for.who, "rank 2");
}

TEST(EnergyAccount, SaysNothingOfCarbonWithoutAnIntensity) {
  EnergyAccount account;
  account.joules = 3.6e6;
  account.seconds = 1;
  const EnergyCounts counts{1, 1, 1, "token", 3.6e6};
  Config config;
  EXPECT_THAT(energy_text(config, account, counts), HasSubstr("no energy.carbon_intensity is given"));
  EXPECT_THAT(energy_text(config, account, counts), HasSubstr("no facility overhead"));
  EXPECT_THAT(energy_json(config, account, counts), Not(HasSubstr("co2")));
  config.energy.carbon_intensity = 57;
  config.energy.source = "the grid";
  config.energy.pue = 1.2;
  EXPECT_THAT(energy_text(config, account, counts), HasSubstr("0.0684 kg CO2e at 57 g/kWh (the grid)"));
  EXPECT_THAT(energy_json(config, account, counts), HasSubstr("\"carbon_source\": \"the grid\""));
}

TEST(EnergyAccount, TravelsWhole) {
  RankEnergy rank = metered_ranks(5)[0];
  rank.words = "metered: made\n";
  rank.troubles = "it stands still\n";
  rank.evaluated.forward = 7;
  const RankEnergy other = unpacked(packed(rank));
  EXPECT_EQ(other.spent, rank.spent);
  EXPECT_EQ(other.evaluated, rank.evaluated);
  EXPECT_EQ(other.words, rank.words);
  EXPECT_EQ(other.troubles, rank.troubles);
  EXPECT_EQ(other.energy.back().joules, rank.energy.back().joules);
  EXPECT_EQ(other.work.size(), rank.work.size());
}

}  // namespace
}  // namespace mindpipe
