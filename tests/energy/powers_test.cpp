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

std::string megawatt_hours(double kwh, double pue) {
  return fmt::format("{:.0f}", facility_energy(kwh, pue) / 1000);
}
std::string tonnes(double kwh, double pue, double intensity, int digits) {
  return fmt::format("{:.{}f}", kilograms_co2(facility_energy(kwh, pue), intensity) / 1000, digits);
}

/// Luccioni, Viguier and Ligozat: Estimating the Carbon Footprint of BLOOM (arXiv 2211.02001, JMLR 24:253).
TEST(Carbon, GivesTheNumbersOfBloom) {
  EXPECT_EQ(fmt::format("{:.0f}", device_kilowatt_hours(1'082'990, 400)), "433196");
  EXPECT_EQ(tonnes(433'196, 1, 57, 1), "24.7");  // computing
  EXPECT_EQ(tonnes(256'646, 1, 57, 1), "14.6");  // idle
  const double embodied = 11.2;
  EXPECT_EQ(fmt::format("{:.1f}", kilograms_co2(433'196 + 256'646, 57) / 1000 + embodied), "50.5");
}

/// A model, the hours of GPUs of 400 W that it took, and what comes out.
struct Published {
  const char* model;
  double hours;
  const char *megawatt_hours, *tonnes;
};

/// Touvron et al.: LLaMA (arXiv 2302.13971), table 15: a PUE of 1.1, 385 g/kWh.
TEST(Carbon, GivesTheNumbersOfLlama) {
  for (const Published& row : {Published{"OPT-175B", 809'472, "356", "137"},
                               {"BLOOM-175B", 1'082'880, "476", "183"},  // printed: 475 MWh
                               {"LLaMA-7B", 82'432, "36", "14"},
                               {"LLaMA-13B", 135'168, "59", "23"},
                               {"LLaMA-33B", 530'432, "233", "90"},
                               {"LLaMA-65B", 1'022'362, "450", "173"}}) {  // printed: 449 MWh
    const double kwh = device_kilowatt_hours(row.hours, 400);
    EXPECT_EQ(megawatt_hours(kwh, 1.1), row.megawatt_hours) << row.model;
    EXPECT_EQ(tonnes(kwh, 1.1, 385, 0), row.tonnes) << row.model;
  }
}

/// MODEL_CARD.md of github.com/meta-llama/llama; the total has the 34B of the paper (arXiv 2307.09288), whose
/// cluster gave GPUs 350 W.
TEST(Carbon, GivesTheNumbersOfLlama2) {
  double sum = kilograms_co2(facility_energy(device_kilowatt_hours(1'038'336, 350), 1.1), 385) / 1000;
  for (const Published& row : {Published{"Llama 2 7B", 184'320, "", "31.22"},
                               {"Llama 2 13B", 368'640, "", "62.45"},  // printed: 62.44, twice the 7B's
                               {"Llama 2 70B", 1'720'320, "", "291.42"}}) {
    const double kwh = device_kilowatt_hours(row.hours, 400);
    EXPECT_EQ(tonnes(kwh, 1.1, 385, 2), row.tonnes) << row.model;
    sum += kilograms_co2(facility_energy(kwh, 1.1), 385) / 1000;
  }
  EXPECT_EQ(fmt::format("{:.2f}", sum), "539.00");
  EXPECT_EQ(184'320 + 368'640 + 1'038'336 + 1'720'320, 3'311'616);  // hours, as the card has them
}

TEST(Carbon, JoulesBecomeKilowattHours) { EXPECT_DOUBLE_EQ(kilowatt_hours(3.6e6), 1); }

}  // namespace
}  // namespace mindpipe
