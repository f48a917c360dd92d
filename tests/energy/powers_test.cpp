#include "energy/powers.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "energy/carbon.h"

namespace mindpipe {
namespace {

/// Windows of `ranks` ranks with known powers, whose energy comes with so much noise.
std::vector<EnergyWindow> made_windows(int ranks, int windows, double busy_watts, double rest_watts,
                                       double noise) {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> share(0.55, 0.95);
  std::normal_distribution<double> off(1, noise);
  std::vector<EnergyWindow> made;
  for (int i = 0; i < windows; ++i) {
    const double all = 2.0 * ranks, busy = all * share(random);
    made.push_back({(busy_watts * busy + rest_watts * (all - busy)) * off(random), busy, all - busy});
  }
  return made;
}

TEST(FitPowers, FindsThePowersOfBusyAndWaitingRanks) {
  const FittedPowers found = fit_powers(made_windows(8, 200, 690, 410, 0.01), {340, 150, 60, 200});
  EXPECT_TRUE(found.fitted);
  EXPECT_NEAR(found.busy, 690, 0.03 * 690);
  EXPECT_NEAR(found.rest, 410, 0.03 * 410);
}

TEST(FitPowers, GoesByTheEstimateWhereNothingTellsBusyFromWaiting) {
  const Powers estimate{340, 150, 60, 200};
  std::vector<EnergyWindow> alike(50, EnergyWindow{1000, 1.5, 0.5});
  const FittedPowers found = fit_powers(alike, estimate);
  EXPECT_FALSE(found.fitted);
  EXPECT_NEAR(found.busy * 1.5 + found.rest * 0.5, 1000, 1e-6);
  EXPECT_NEAR(found.busy / found.rest, 540.0 / 350.0, 1e-9);
  EXPECT_FALSE(fit_powers(made_windows(8, 200, 690, 410, 0.5), estimate).fitted);  // too much noise
  EXPECT_FALSE(fit_powers(made_windows(8, 5, 690, 410, 0), estimate).fitted);      // too few
  EXPECT_EQ(fit_powers({}, estimate).busy, 0);
}

TEST(FitPowers, ItsPhasesAddUpToTheTotal) {
  for (const double noise : {0.0, 0.01, 0.03}) {
    const std::vector<EnergyWindow> windows = made_windows(4, 100, 8, 7, noise);
    const FittedPowers found = fit_powers(windows, {6, 5, 2, 2});
    double all = 0, phases = 0;
    for (const EnergyWindow& w : windows) {
      all += w.joules;
      phases += found.busy * w.busy + found.rest * w.rest;
    }
    EXPECT_NEAR(phases, all, 0.02 * all) << noise;
  }
}

TEST(PartOfJob, ANodeOfItsOwnIsAllTheJobs) { EXPECT_EQ(part_of_job({1000, 10, 40, 19.5, 20, 2, 16}), 1000); }

TEST(PartOfJob, TwoJobsOnANodeDoNotBothClaimIt) {
  // 1000 J in 10 s, 40 W of them idle; one job has 12 of 16 processors and 30 s of 40 s of work.
  const double first = part_of_job({1000, 10, 40, 30, 40, 12, 16}),
               second = part_of_job({1000, 10, 40, 10, 40, 4, 16});
  EXPECT_DOUBLE_EQ(first, 400 * 0.75 + 600 * 0.75);
  EXPECT_DOUBLE_EQ(first + second, 1000);
  // Neither has processors of its own.
  EXPECT_DOUBLE_EQ(part_of_job({1000, 10, 40, 30, 40, 16, 16}) + part_of_job({1000, 10, 40, 10, 40, 16, 16}),
                   1000);
  EXPECT_LE(part_of_job({100, 10, 40, 30, 40, 12, 16}), 100);  // less than what idle nodes are said to take
}

std::string tonnes(double kwh, double pue, double intensity, int digits) {
  return fmt::format("{:.{}f}", kilograms_co2(facility_energy(kwh, pue), intensity) / 1000, digits);
}

TEST(Carbon, GivesTheNumbersOfBloom) {
  EXPECT_EQ(tonnes(433'196, 1, 57, 1), "24.7");  // computing
  EXPECT_EQ(tonnes(256'646, 1, 57, 1), "14.6");  // idle
  EXPECT_EQ(fmt::format("{:.0f}", device_kilowatt_hours(1'082'990, 400)), "433196");
}

TEST(Carbon, GivesTheNumbersOfLlama) {
  struct Row {
    double hours;
    const char *megawatt_hours, *tonnes;
  };
  for (const Row& row : {Row{82'432, "36", "14"}, Row{135'168, "59", "23"}, Row{530'432, "233", "90"}}) {
    const double kwh = device_kilowatt_hours(row.hours, 400);
    EXPECT_EQ(fmt::format("{:.0f}", facility_energy(kwh, 1.1) / 1000), row.megawatt_hours);
    EXPECT_EQ(tonnes(kwh, 1.1, 385, 0), row.tonnes);
  }
  EXPECT_EQ(tonnes(device_kilowatt_hours(1'022'362, 400), 1.1, 385, 0), "173");
  EXPECT_EQ(tonnes(device_kilowatt_hours(184'320, 400), 1.1, 385, 2), "31.22");
  EXPECT_EQ(tonnes(device_kilowatt_hours(1'720'320, 400), 1.1, 385, 2), "291.42");
}

TEST(Carbon, JoulesBecomeKilowattHours) { EXPECT_DOUBLE_EQ(kilowatt_hours(3.6e6), 1); }

}  // namespace
}  // namespace mindpipe
