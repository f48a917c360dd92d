#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>

#include "app/the_program.h"
#include "energy/made_powercap.h"

// Energy as a user meets it: the settings, and what is refused.
namespace mindpipe {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class EnergySettings : public TheProgram {
 protected:
  /// A file of intensities, hour by hour from the one that has begun, or from so many hours later.
  std::string forecast(const std::vector<int>& grams, int later = 0) const {
    const std::time_t begin = (std::time(nullptr) / 3600 + later) * 3600;
    std::ofstream file(root_ / "forecast.csv");
    for (std::size_t hour = 0; hour < grams.size(); ++hour) {
      const std::time_t at = begin + static_cast<std::time_t>(3600 * hour);
      std::tm parts{};
      char text[32];
      std::strftime(text, sizeof text, "%Y-%m-%dT%H:%MZ", gmtime_r(&at, &parts));
      file << text << "," << grams[hour] << "\n";
    }
    return " energy.forecast=" + (root_ / "forecast.csv").string();
  }
};

TEST_F(EnergySettings, AreRefusedWithASentence) {
  const MadePowercap tree;
  tree.zone("intel-rapl:0", "package-0", 0);
  tree.put("intel-rapl:0", "energy_uj", "none");
  struct Row {
    std::string settings, sentence;
  };
  for (const Row& row :
       {Row{"energy.source=RTE", "energy.source is given and energy.carbon_intensity is not: carbon needs"},
        Row{"energy.carbon_intensity=57", "energy.source does not say whose number that is"},
        Row{"energy.carbon_intensity=57 energy.source=' '",
            "energy.source does not say whose number that is"},
        Row{"energy.deadline=36h",
            "energy.deadline is given and energy.forecast, for which it counts, is not"},
        Row{"energy.meter=rapl energy.powercap=/no/such/tree",
            "energy.meter is rapl: /no/such/tree has no counter of energy (RAPL) (energy.meter=estimate goes "
            "by"},
        Row{"energy.meter=rapl energy.powercap=" + tree.root,
            tree.root +
                "/intel-rapl:0/energy_uj cannot be read (no number): this user needs the right to read it"},
        Row{"energy.meter=nvml",
            "energy.meter is nvml: device.kind is cpu, so no rank of this node computes on a GPU"}}) {
    const Answer refused = tiny(row.settings);
    EXPECT_EQ(refused.code, 78) << refused.text;
    EXPECT_THAT(refused.text, HasSubstr(row.sentence));
  }
}

TEST_F(EnergySettings, OfAStartAreAdviceAndNoMore) {
  const std::string run = forecast({500, 400, 90, 100, 600, 600}) + " energy.duration=90m ";
  const Answer planned = tiny(run + "energy.deadline=5h", "plan");
  EXPECT_EQ(planned.code, 0) << planned.text;
  EXPECT_THAT(planned.text,
              AllOf(HasSubstr("a run of 1 h 30 min within 5 h 00 min"), HasSubstr("sbatch --begin=20"),
                    HasSubstr(" % less)"), HasSubstr("nothing is started or paused by itself")));
  const Answer far = tiny(run + "energy.deadline=36h", "plan");
  EXPECT_EQ(far.code, 78) << far.text;
  EXPECT_THAT(far.text, HasSubstr("take a forecast that reaches that far, or set energy.deadline"));
  const Answer longer = tiny(forecast({500, 400}) + " energy.duration=9h", "plan");
  EXPECT_EQ(longer.code, 78) << longer.text;
  EXPECT_THAT(longer.text, HasSubstr("energy.deadline: the run takes 9 h 00 min"));
  std::ofstream(root_ / "forecast.csv") << "tomorrow,12\n";
  const Answer wrong = tiny("energy.forecast=" + (root_ / "forecast.csv").string(), "plan");
  EXPECT_EQ(wrong.code, 65) << wrong.text;
  EXPECT_THAT(wrong.text, HasSubstr("forecast.csv:1: is no line of a forecast"));
  EXPECT_EQ(tiny("energy.forecast=none.csv", "plan").code, 66);
}

TEST_F(EnergySettings, OfAStartSayFromWhenTheForecastCounts) {
  const Answer later = tiny(forecast({50, 40, 30}, 4) + " energy.duration=1h", "plan");
  EXPECT_EQ(later.code, 0) << later.text;
  EXPECT_THAT(later.text,
              AllOf(HasSubstr("started when the forecast begins, 20"), HasSubstr(" 50 g CO2/kWh, started 20"),
                    HasSubstr("30 g/kWh (40 % less)"), Not(HasSubstr("at once"))));
  const Answer past = tiny(forecast({50, 40, 30}, -20) + " energy.duration=1h", "plan");
  EXPECT_EQ(past.code, 78) << past.text;
  EXPECT_THAT(past.text,
              AllOf(HasSubstr("energy.forecast: ended at 20"), HasSubstr("take a newer forecast")));
  for (const char* grams : {" 0", "70"}) {
    const Answer even = tiny(
        forecast({std::stoi(grams), std::stoi(grams), std::stoi(grams)}) + " energy.duration=1h", "plan");
    EXPECT_EQ(even.code, 0) << even.text;
    EXPECT_THAT(even.text, AllOf(HasSubstr(std::string("started at once ") + (grams + (grams[0] == ' ')) +
                                           " g CO2/kWh, and no later start emits less"),
                                 Not(HasSubstr("% less"))));
  }
}

TEST_F(EnergySettings, OfACapAreAnsweredWithoutAMeter) {
  const MadePowercap tree;
  tree.zone("intel-rapl:0", "package-0", 0);
  tree.put("intel-rapl:0", "energy_uj", "none");
  tree.put("intel-rapl:0", "constraint_0_name", "long_term");
  tree.put("intel-rapl:0", "constraint_0_power_limit_uw", "225000000");
  for (const char* meter : {"none", "estimate", "auto"}) {
    const Answer said = tiny(std::string("train.steps=2 energy.cap=true energy.powercap=") + tree.root +
                             " energy.meter=" + meter + " run.dir=" + (root_ / meter).string());
    EXPECT_EQ(said.code, 0) << said.text;
    EXPECT_THAT(said.text,
                AllOf(HasSubstr("power that is allowed on "), HasSubstr(": package-0: 225 W (long_term)\n")));
  }
  EXPECT_FALSE(fs::exists(root_ / "none/energy.json"));
  tree.put("intel-rapl:0", "constraint_0_power_limit_uw", "");
  EXPECT_THAT(
      tiny("train.steps=2 energy.cap=true energy.meter=none energy.powercap=" + tree.root +
           " run.dir=" + (root_ / "unreadable").string())
          .text,
      HasSubstr("/constraint_0_power_limit_uw cannot be read (no number): this user needs the right"));
}

TEST_F(EnergySettings, OfARunSayWhichStartsHaveNoAccount) {
  const std::string dir = " run.dir=" + (root_ / "starts").string(), json = "starts/energy.json";
  const auto said = [&] { return nlohmann::json::parse(read(json)); };
  EXPECT_EQ(tiny("train.steps=2" + dir).code, 0);
  EXPECT_EQ(said()["run_unfinished_starts"], 0);
  EXPECT_EQ(said()["run_missing_steps"], 0);
  const double first = said()["run_joules"];
  EXPECT_EQ(tiny("train.steps=4 energy.meter=none" + dir).code, 0);
  const Answer third = tiny("train.steps=6" + dir);
  EXPECT_EQ(third.code, 0) << third.text;
  EXPECT_THAT(third.text,
              HasSubstr("; without 2 steps of starts that were killed or had energy.meter none\n"));
  EXPECT_EQ(said()["run_missing_steps"], 2);
  EXPECT_GT(said()["run_joules"], first);

  // A start that is killed amid its steps has no account.
  const Answer killed = run_command("timeout -s KILL 4 " MINDPIPE_BINARY " train --config " +
                                    (root_ / "tiny.yaml").string() + " train.steps=1000000" + dir);
  EXPECT_NE(killed.code, 0);
  EXPECT_EQ(said()["run_unfinished_starts"], 1);
  EXPECT_GT(said()["run_joules"], first);
  const Answer fifth = tiny("train.steps=8" + dir);
  EXPECT_EQ(fifth.code, 0) << fifth.text;
  EXPECT_THAT(fifth.text, HasSubstr("; without 1 start that did not come to its end; without 2 steps of"));
  EXPECT_THAT(run("report " + (root_ / "starts").string()).text,
              HasSubstr("without 1 start that did not come"));
}

TEST_F(EnergySettings, OfEachMeterSayWhatTheNumbersAre) {
  const Answer without = tiny("train.steps=2 energy.meter=none run.dir=" + (root_ / "none").string());
  EXPECT_EQ(without.code, 0) << without.text;
  EXPECT_THAT(without.text, Not(HasSubstr("energy")));
  EXPECT_FALSE(fs::exists(root_ / "none/energy.json"));

  const Answer guessed = tiny("train.steps=2 energy.powercap=/no/such/tree energy.cap=true run.dir=" +
                              (root_ / "auto").string());
  EXPECT_EQ(guessed.code, 0) << guessed.text;
  EXPECT_THAT(guessed.text,
              AllOf(HasSubstr("estimated from busy and waiting time: /no/such/tree has no counter of energy"),
                    HasSubstr(": processors: not known: /no/such/tree has no zone of RAPL"),
                    HasSubstr("\nenergy (estimated): "), HasSubstr("\nof it (estimated) forward "),
                    HasSubstr("\nwaiting (estimated): "), HasSubstr("\nthe run so far (estimated): "),
                    HasSubstr("no facility overhead"),
                    HasSubstr("CO2 not known: no energy.carbon_intensity is given")));
  const nlohmann::json found = nlohmann::json::parse(read("auto/energy.json"));
  EXPECT_EQ(found["estimated"], true);
  EXPECT_EQ(found["run_is_estimated"], true);
  EXPECT_EQ(found["steps"], 2);
  EXPECT_FALSE(found.contains("kg_co2e"));
  EXPECT_THAT(run("report " + (root_ / "auto").string()).text, HasSubstr("\nenergy (estimated): "));
}

}  // namespace
}  // namespace mindpipe
