#include "energy/powers.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>

#include "energy/carbon.h"

namespace mindpipe {
namespace {

/// Windows of `ranks` ranks with known powers, whose energy comes with so much noise.
std::vector<EnergyWindow> made_windows(int ranks, int windows, double busy_watts, double rest_watts,
                                       double noise) {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> share(0.55, 0.95);
  std::normal_distribution<double> off;
  std::vector<EnergyWindow> made;
  for (int i = 0; i < windows; ++i) {
    const double all = 2.0 * ranks, busy = all * share(random);
    made.push_back(
        {(busy_watts * busy + rest_watts * (all - busy)) * (1 + noise * off(random)), busy, all - busy});
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

/// Work of some jobs on the processors of a node over ten seconds of 1000 J, 40 W of them idle power.
class MadeNode {
 public:
  explicit MadeNode(int processors) : busy_(static_cast<std::size_t>(processors)) {}
  /// A job that may use processors [first, end) and keeps those of [works, rests) busy for a share of the
  /// time, as far as they are free.
  void add(int first, int end, int works, int rests, double share) {
    Job job{first, end};
    for (int processor = works; processor < rests; ++processor) {
      double& busy = busy_[static_cast<std::size_t>(processor)];
      const double worked = std::min(share * seconds, seconds - busy);
      busy += worked;
      job.worked += worked;
    }
    jobs_.push_back(job);
  }
  std::vector<double> parts() const {
    std::vector<double> parts;
    for (const Job& job : jobs_) {
      NodeInterval interval{
          joules, seconds, 40, job.worked, 0, 0, job.end - job.first, static_cast<int>(busy_.size())};
      for (std::size_t processor = 0; processor < busy_.size(); ++processor) {
        interval.node_cpu += busy_[processor];
        if (static_cast<int>(processor) >= job.first && static_cast<int>(processor) < job.end)
          interval.there_cpu += busy_[processor];
      }
      parts.push_back(part_of_job(interval));
    }
    return parts;
  }
  static constexpr double joules = 1000, seconds = 10;

 private:
  struct Job {
    int first = 0, end = 0;
    double worked = 0;
  };
  std::vector<double> busy_;
  std::vector<Job> jobs_;
};

double sum(const std::vector<double>& parts) {
  double all = 0;
  for (const double part : parts) all += part;
  return all;
}

TEST(PartOfJob, ANodeOfItsOwnIsAllTheJobs) {
  EXPECT_EQ(part_of_job({1000, 10, 40, 19.5, 20, 20, 2, 16}), 1000);
  // One that mostly waits for GPUs, beside the system's own work.
  EXPECT_EQ(part_of_job({1000, 10, 40, 2, 2.1, 2.05, 2, 64}), 1000);
}

TEST(PartOfJob, JobsWithProcessorsOfTheirOwnHaveTheIdlePowerOfThese) {
  MadeNode node(16);
  node.add(0, 12, 0, 12, 0.25);
  node.add(12, 16, 12, 16, 0.25);
  const std::vector<double> parts = node.parts();
  EXPECT_DOUBLE_EQ(parts[0], 400 * 0.75 + 600 * 0.75);
  EXPECT_DOUBLE_EQ(parts[1], 400 * 0.25 + 600 * 0.25);
}

TEST(PartOfJob, JobsThatShareProcessorsHaveTheIdlePowerOfTheTimeTheyUse) {
  MadeNode node(16);
  node.add(0, 16, 0, 16, 0.6);
  node.add(0, 16, 0, 16, 0.2);
  const std::vector<double> parts = node.parts();
  EXPECT_DOUBLE_EQ(parts[0], 400 * 0.6 + 600 * 0.75);
  EXPECT_DOUBLE_EQ(parts[1], 400 * 0.2 + 600 * 0.25);
}

TEST(PartOfJob, OfUnevenJobsDoNotAddUpToMoreThanThereIs) {
  struct Row {
    const char* what;
    int processors;
    std::vector<std::array<double, 5>> jobs;
    double least;  ///< what all jobs together have to get
  };
  for (const Row& row : std::vector<Row>{
           {"62 and 2 of 64 processors", 64, {{0, 62, 0, 62, 1}, {62, 64, 62, 64, 1}}, 1000},
           {"97 and 3 % of the work", 16, {{0, 12, 0, 12, 0.3}, {12, 16, 12, 16, 0.03}}, 990},
           {"96 and 4 % of the work, unbound", 64, {{0, 64, 0, 64, 0.6}, {0, 64, 0, 64, 0.025}}, 850},
           {"one bound to 12 of 16, one unbound", 16, {{0, 12, 0, 12, 0.2}, {0, 16, 0, 16, 0.15}}, 700},
           {"one bound to 12 of 16, one unbound beside it",
            16,
            {{0, 12, 0, 12, 0.9}, {0, 16, 12, 16, 1}},
            990},
           {"both on the same 12 of 16", 16, {{0, 12, 0, 12, 0.3}, {0, 12, 0, 12, 0.3}}, 770},
           {"hardly any work, equal", 64, {{0, 64, 0, 1, 0.2}, {0, 64, 1, 2, 0.2}}, 600},
           {"hardly any work, uneven", 64, {{0, 64, 0, 1, 0.3}, {0, 64, 1, 2, 0.01}}, 1000},
           {"three, one of which does next to nothing",
            16,
            {{0, 8, 0, 8, 1}, {8, 15, 8, 15, 0.9}, {15, 16, 15, 16, 0.001}},
            900},
           {"three unbound", 8, {{0, 8, 0, 8, 0.7}, {0, 8, 0, 8, 0.2}, {0, 8, 0, 8, 0.05}}, 950},
           {"three, a small one in a large one's processors",
            32,
            {{0, 32, 0, 24, 1}, {24, 28, 24, 28, 0.05}, {0, 32, 28, 32, 1}},
            700}}) {
    MadeNode node(row.processors);
    for (const auto& job : row.jobs)
      node.add(static_cast<int>(job[0]), static_cast<int>(job[1]), static_cast<int>(job[2]),
               static_cast<int>(job[3]), job[4]);
    EXPECT_LE(sum(node.parts()), MadeNode::joules + 1e-9) << row.what;
    EXPECT_GE(sum(node.parts()), row.least) << row.what;
  }
}

TEST(PartOfJob, OfRandomJobsDoNotAddUpToMoreThanThereIs) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> part(0, 1);
  for (int made = 0; made < 5000; ++made) {
    const int processors = 1 << std::uniform_int_distribution<int>(1, 7)(random);
    MadeNode node(processors);
    int free = 0, first = 0, end = processors;
    for (int jobs = std::uniform_int_distribution<int>(2, 3)(random); jobs > 0; --jobs) {
      // On processors of its own, as far as there are some, on those of the job before, or on all.
      const int size = std::uniform_int_distribution<int>(1, processors)(random);
      const bool is_bound = part(random) < 0.6 && free + size <= processors;
      const bool is_beside = !is_bound && part(random) < 0.5;
      if (!is_beside) {
        first = is_bound ? free : 0;
        end = is_bound ? free + size : processors;
      }
      if (is_bound) free = end;
      const int works = std::uniform_int_distribution<int>(first, end - 1)(random),
                rests = std::uniform_int_distribution<int>(works + 1, end)(random);
      node.add(first, end, works, rests, std::pow(part(random), 4));
    }
    ASSERT_LE(sum(node.parts()), MadeNode::joules + 1e-9) << made;
  }
}

TEST(PartOfJob, OfANodeOfLessThanItsIdlePowerIsNotMoreThanThereIs) {
  EXPECT_LE(part_of_job({100, 10, 40, 30, 40, 40, 12, 16}), 100);
  EXPECT_EQ(part_of_job({1000, 10, 40, 0, 0, 0, 2, 16}), 0);
}

/// Energy in kWh of devices that take `watts` each, together for so many hours.
double device_kilowatt_hours(double device_hours, double watts) {
  return kilowatt_hours(device_hours * 3600 * watts);
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
  EXPECT_EQ(tonnes(433'196, 1, 57, 2), "24.69");  // computing
  EXPECT_EQ(tonnes(433'196, 1, 57, 1), "24.7");
  EXPECT_EQ(tonnes(256'646, 1, 57, 1), "14.6");  // idle
  const double manufacturing = 11.2;             // no energy of the run: nothing here computes it
  EXPECT_EQ(fmt::format("{:.1f}", kilograms_co2(433'196 + 256'646, 57) / 1000 + manufacturing), "50.5");
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

/// MODEL_CARD.md of Llama 3.1 (github.com/meta-llama/llama-models): hours of GPUs of 700 W, and tonnes to
/// three digits. It prints no intensity; the largest model's numbers give one to four digits.
TEST(Carbon, GivesTheNumbersOfLlama31) {
  const auto energy = [](double hours) { return device_kilowatt_hours(hours, 700); };
  const double intensity = 8930e6 / energy(30.84e6);
  EXPECT_EQ(fmt::format("{:.1f}", intensity), "413.7");
  const auto tens_of_tonnes = [&](double hours) {
    return fmt::format("{:.0f}0", kilograms_co2(energy(hours), intensity) / 1e4);
  };
  EXPECT_EQ(tens_of_tonnes(1.46e6), "420");
  EXPECT_EQ(tens_of_tonnes(30.84e6), "8930");
  EXPECT_EQ(tens_of_tonnes(7.0e6), "2030");    // printed: 2,040
  EXPECT_EQ(tens_of_tonnes(7.04e6), "2040");   // which rounds to 7.0 million hours
  EXPECT_EQ(tens_of_tonnes(39.3e6), "11380");  // printed: 11,390, the sum of the three
  EXPECT_EQ(fmt::format("{:.0f}", 420e6 / energy(1.46e6)), "411");
  EXPECT_EQ(fmt::format("{:.0f}", 2040e6 / energy(7.0e6)), "416");
}

TEST(Carbon, JoulesBecomeKilowattHours) { EXPECT_DOUBLE_EQ(kilowatt_hours(3.6e6), 1); }

}  // namespace
}  // namespace mindpipe
