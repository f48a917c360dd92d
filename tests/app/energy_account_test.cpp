#include "app/energy/account.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/energy/energy_text.h"
#include "config/config.h"

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

TEST(EnergyAccount, ItsPhasesAddUpWhereRanksTookLessWhileFilesWereWritten) {
  RankEnergy rank = noted_run(0.5);
  constexpr double gap = 30, watts = 250;
  rank.end_ns += std::llround(gap * second);
  rank.joules += gap * watts;
  rank.work.push_back({rank.end_ns, rank.work.back().busy});
  rank.energy.push_back({rank.end_ns, rank.joules});
  const EnergyAccount account = account_of({rank}, {1, 1, 1, 1}, estimate);
  EXPECT_TRUE(account.powers.fitted);
  EXPECT_NEAR(account.phases.total(), account.joules, 1e-9 * account.joules);
}

TEST(EnergyAccount, SaysAPartOfANodeThatOthersUse) {
  std::vector<RankEnergy> ranks = metered_ranks(60);
  const EnergyCounts counts{10, 40, 400, "token", {1, false}};
  const auto text = [&] { return energy_text({}, account_of(ranks, {1, 1, 4, 1}, estimate), counts); };
  EXPECT_THAT(text(), testing::Not(HasSubstr("this job's part")));
  ranks[0].shared = true;
  EXPECT_THAT(text(), HasSubstr(" (this job's part, since others used its nodes); "));
}

TEST(EnergyAccount, SaysWhatIsEstimated) {
  std::vector<RankEnergy> ranks = metered_ranks(60);
  EXPECT_FALSE(account_of(ranks, {1, 1, 4, 1}, estimate).estimated);
  ranks[0].metered = false;
  const EnergyAccount account = account_of(ranks, {1, 1, 4, 1}, estimate);
  EXPECT_TRUE(account.estimated);
  EXPECT_NEAR(account.phases.total(), account.joules, 1e-6 * account.joules);
  const EnergyCounts counts{10, 40, 400, "token", {account.joules, account.estimated}};
  EXPECT_THAT(energy_text({}, account, counts), HasSubstr("energy (estimated): "));
  EXPECT_THAT(energy_json({}, account, counts), HasSubstr("\"estimated\": true"));
}

TEST(EnergyAccount, CallsTheJobsPartOfASharedGpuAnEstimate) {
  std::vector<RankEnergy> ranks = metered_ranks(60);
  ranks[0].divided = true;
  EXPECT_TRUE(account_of({unpacked(packed(ranks[0]))}, {1, 1, 1, 1}, estimate).estimated);
}

TEST(EnergyAccount, SaysWhichStartsAreNotInIt) {
  EnergyAccount account;
  account.joules = account.seconds = 1;
  EnergyCounts counts{1, 1, 1, "token", {3.6e6}};
  EXPECT_THAT(energy_text({}, account, counts), Not(HasSubstr("without")));
  counts.run.unfinished_starts = 1;
  EXPECT_THAT(energy_text({}, account, counts),
              HasSubstr("is given; without 1 start that did not come to its end\n"));
  counts.run.unfinished_starts = 2;
  counts.run.missing_steps = 50;
  for (const std::string& text : {energy_text({}, account, counts), energy_json({}, account, counts)})
    EXPECT_THAT(text,
                HasSubstr("; without 2 starts that did not come to their end; without 50 steps of starts "
                          "that were killed or had energy.meter none"));
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

/// Ranks that took such times, of a run of so many seconds that nobody metered: they wait where they do not
/// work.
std::vector<RankEnergy> timed_ranks(const std::vector<double>& worked, double seconds) {
  std::vector<RankEnergy> ranks;
  for (const double work : worked) {
    RankEnergy rank;
    rank.end_ns = std::llround(seconds * second);
    rank.spent.forward = std::llround(work / 3 * second);
    rank.spent.backward = std::llround(work * second) - rank.spent.forward;
    rank.spent.wait_data = rank.end_ns - rank.spent.work();
    ranks.push_back(rank);
  }
  return ranks;
}

TEST(EnergyAccount, ChargesASlowRankWithTheWaitingOfTheOthers) {
  // Step by step: all wait for the last one.
  std::vector<double> worked(8, 0);
  double seconds = 0, waited = 0;
  for (int step = 0; step < 500; ++step) {
    std::vector<double> took;
    for (int rank = 0; rank < 8; ++rank)
      took.push_back((rank == 5 ? 1.3 : 1.0) * (1 + 0.05 * std::sin(step * (rank + 1.0))));
    for (int rank = 0; rank < 8; ++rank) {
      ASSERT_GE(took[5], took[rank]);
      waited += took[5] - took[rank];
      worked[rank] += took[rank];
    }
    seconds += took[5];
  }
  const std::vector<RankEnergy> ranks = timed_ranks(worked, seconds);
  const EnergyAccount account = account_of(ranks, {1, 8, 1, 1}, estimate);
  constexpr double watts_waiting = 150 + 200;
  EXPECT_EQ(account.waited_for.who, "rank 5");
  EXPECT_NEAR(account.waited_for.joules, watts_waiting * waited, 1e-6 * watts_waiting * waited);
  EXPECT_NEAR(account.phases.waiting, account.waited_for.joules, 1e-6 * account.phases.waiting);
  const EnergyCounts counts{500, 500, 500, "token", {account.joules}};
  EXPECT_THAT(energy_text({}, account, counts),
              HasSubstr(fmt::format("rank 5 costs {:.2f} MJ an hour in others' waiting",
                                    watts_waiting * waited / seconds * 3600 * 1e-6)));
}

TEST(EnergyAccount, ChargesAHeavyStageWithWhatTheOthersWouldNotWaitWithoutIt) {
  // A pipeline of four stages, forwards alone, each micro-batch behind the one before; two replicas.
  const auto step_of = [](const std::array<double, 4>& stages) {
    std::array<double, 4> free{};
    for (int micro_batch = 0; micro_batch < 64; ++micro_batch) {
      double there = 0;
      for (std::size_t stage = 0; stage < 4; ++stage)
        there = free[stage] = std::max(free[stage], there) + stages[stage];
    }
    return free[3];
  };
  const double step = step_of({1, 1, 1.5, 1}), even = step_of({1, 1, 1, 1});
  std::vector<double> worked;
  for (int rank = 0; rank < 8; ++rank)
    worked.push_back(64 * (coord_at({1, 2, 4, 1}, rank).pipeline == 2 ? 1.5 : 1));
  const EnergyAccount account = account_of(timed_ranks(worked, step), {1, 2, 4, 1}, estimate);
  EXPECT_EQ(account.waited_for.who, "stage 2");
  EXPECT_NEAR(account.waited_for.joules, 350 * 6 * (step - even), 1e-6 * 350 * 6 * (step - even));
}

TEST(EnergyAccount, SaysNothingOfCarbonWithoutAnIntensity) {
  EnergyAccount account;
  account.joules = 3.6e6;
  account.seconds = 1;
  const EnergyCounts counts{1, 1, 1, "token", {3.6e6}};
  Config config;
  EXPECT_THAT(energy_text(config.energy, account, counts), HasSubstr("no energy.carbon_intensity is given"));
  EXPECT_THAT(energy_text(config.energy, account, counts), HasSubstr("no facility overhead"));
  EXPECT_THAT(energy_json(config.energy, account, counts), Not(HasSubstr("co2")));
  config.energy.carbon_intensity = 57;
  config.energy.source = "the grid";
  config.energy.pue = 1.2;
  EXPECT_THAT(energy_text(config.energy, account, counts),
              HasSubstr("0.0684 kg CO2e at 57 g/kWh (the grid)"));
  EXPECT_THAT(energy_json(config.energy, account, counts), HasSubstr("\"carbon_source\": \"the grid\""));
}

TEST(EnergyAccount, HasTheSlackOfEveryStageInItsJson) {
  Config config;
  config.run.dir = "unused";
  config.model.gpt.layers = 4;
  config.schedule.cuts = {1, 2, 3};
  config.grid.pipeline = 4;
  config.train.batch = 64;
  config.train.micro_batch = 1;
  config.data.train = {{"synthetic:arithmetic", 1}};
  const RunPlan plan = make_run_plan(resolve(config));
  std::vector<RankEnergy> ranks = metered_ranks(60);
  const EnergyAccount account = account_of(ranks, {1, 1, 4, 1}, estimate);
  const SlackAdvice advice = slack_advice(plan, account, ranks, {1, 1, 4, 1}, estimate);
  const EnergyCounts counts{1, 1, 1, "token", {account.joules}};
  const nlohmann::json said = nlohmann::json::parse(energy_json(config.energy, account, counts, advice));
  ASSERT_EQ(said["slack_of_stages"].size(), 4u) << said.dump();
  EXPECT_EQ(said["slack_is_estimated"], true);
  int tight = 0, printed = 0;
  for (std::size_t stage = 0; stage < 4; ++stage) {
    const double slower = said["slack_of_stages"][stage];
    tight += slower < 0.01 ? 1 : 0;
    EXPECT_EQ(slower, advice.stages[stage].slower);
    EXPECT_LE(said["slack_saves_at_least"][stage], said["slack_saves_at_most"][stage]);
    // A clock changes 280 W of the 540 W of a busy rank.
    const double dynamic =
        account.powers.busy * 280 / 540 * 1e-9 * static_cast<double>(ranks[stage].spent.work());
    EXPECT_NEAR(said["slack_saves_at_least"][stage], dynamic * (1 - 1 / (1 + slower)) / account.joules, 1e-9);
    const std::string text = fmt::format("stage {} ", stage);
    printed += slack_text(advice).find(text) != std::string::npos ? 1 : 0;
  }
  EXPECT_GT(tight, 0);
  EXPECT_EQ(printed, 4 - tight) << slack_text(advice);
  EXPECT_GT(printed, 0) << said.dump();
}

TEST(EnergyAccount, SaysThatAPlanIsTooLongToSimulate) {
  EXPECT_EQ(slack_text({}), "");
  EXPECT_THAT(slack_text({{}, 5e6}),
              HasSubstr("how much slower stages may run is not known: a step of 5.0 million actions"));
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
