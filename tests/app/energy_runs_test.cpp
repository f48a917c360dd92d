// thorough
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <set>

#include "app/the_program.h"
#include "energy/made_powercap.h"

// Runs of the program beside a powercap tree that is made, of 100 W.
namespace mindpipe {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class MeteredRuns : public TheProgram {
 protected:
  /// Some seconds of steps.
  static constexpr const char* longer =
      " train.steps=400 train.batch=64 train.evaluate_every=100 trace.steps=0 model.width=64 ";

  std::string on_ranks(int ranks, const std::string& settings) const {
    return MINDPIPE_SOURCE_DIR "/tests/run_mpi.sh " + std::to_string(ranks) +
           " " MINDPIPE_BINARY " train --config " + (root_ / "tiny.yaml").string() + " " + settings;
  }
  std::string directory(const std::string& name) const { return " run.dir=" + (root_ / name).string() + " "; }
  nlohmann::json energy(const std::string& run) const {
    return nlohmann::json::parse(read(run + "/energy.json"));
  }
  static double sum_of_phases(const nlohmann::json& energy) {
    double sum = 0;
    for (const char* phase :
         {"forward", "backward", "update", "scalars", "evaluations", "waiting", "outside_steps"})
      sum += energy.at(std::string("joules_") + phase).get<double>();
    return sum;
  }

  const RunningPowercap node_;
  const std::string rapl_ = " energy.meter=rapl energy.powercap=" + node_.root() + " ";
};

TEST_F(MeteredRuns, SayWhereTheNodesEnergyWent) {
  const Answer trained =
      tiny(longer + rapl_ + "energy.carbon_intensity=57 energy.source='RTE, 2022' energy.pue=1.2");
  ASSERT_EQ(trained.code, 0) << trained.text;
  EXPECT_THAT(trained.text,
              AllOf(HasSubstr("\nenergy: "), HasSubstr(" a step, "), HasSubstr(" a token, "),
                    HasSubstr(" a sample; the run so far "), HasSubstr(" evaluations "),
                    HasSubstr("energy.pue 1.2; "), HasSubstr("kg CO2e at 57 g/kWh (RTE, 2022)\n")));
  const nlohmann::json found = energy("run");
  EXPECT_EQ(found["estimated"], false);
  EXPECT_EQ(found["meters"], "metered: package-0, dram of intel-rapl:0:1, package-1, dram of intel-rapl:1:1");
  EXPECT_EQ(found["troubles"], "");
  const double joules = found["joules"], seconds = found["seconds"], kwh = joules / 3.6e6;
  EXPECT_LE(joules, 1.02 * RunningPowercap::watts * seconds + 5);
  if (found["node_was_shared"] == false) {
    EXPECT_GE(joules, 0.98 * RunningPowercap::watts * seconds - 5);
  }
  EXPECT_DOUBLE_EQ(found["run_kwh"], kwh);
  EXPECT_DOUBLE_EQ(found["facility_kwh"], 1.2 * kwh);
  EXPECT_DOUBLE_EQ(found["kg_co2e"], 1.2 * kwh * 57 / 1000);
  EXPECT_EQ(found["carbon_source"], "RTE, 2022");
  EXPECT_DOUBLE_EQ(found["joules_per_step"], joules / 400);
  EXPECT_DOUBLE_EQ(found["joules_per_sample"], joules / 400 / 64);
  EXPECT_DOUBLE_EQ(found["joules_per_token"], joules / 400 / 64 / 32);
  constexpr double to_begin_and_end = 0.03;  // which a run of some seconds does not spread
  EXPECT_LE(found["reader_seconds"], 0.001 * seconds + to_begin_and_end);
  EXPECT_NEAR(sum_of_phases(found), joules, 0.02 * joules);
  EXPECT_THAT(run("report " + (root_ / "run").string()).text, HasSubstr("\nenergy: "));

  // Lines of steps have joules where a second or more lies between them.
  std::istringstream lines(read("run/metrics.jsonl"));
  int with_joules = 0;
  double told = 0;
  for (std::string text; std::getline(lines, text);) {
    const nlohmann::json line = nlohmann::json::parse(text);
    if (!line.contains("joules")) continue;
    EXPECT_GT(line["joules"], 0);
    told += line["joules"].get<double>();
    ++with_joules;
  }
  EXPECT_LE(with_joules, seconds + 1);
  if (found["node_was_shared"] == false) {
    EXPECT_EQ(with_joules > 0, seconds > 2.5) << seconds;
    if (with_joules > 0) {
      EXPECT_NEAR(told / with_joules, joules / 400, 0.3 * joules / 400);
    }
  }

  const Answer more = tiny(longer + rapl_ + "train.steps=500");
  ASSERT_EQ(more.code, 0) << more.text;
  EXPECT_EQ(energy("run")["steps"], 100);
  EXPECT_NEAR(energy("run")["run_joules"], joules + energy("run")["joules"].get<double>(), 1e-6 * joules);
}

TEST_F(MeteredRuns, OfTwoJobsOnANodeDoNotBothClaimIt) {
  const std::string program =
      MINDPIPE_BINARY " train --config " + (root_ / "tiny.yaml").string() + longer + rapl_;
  const auto start = std::chrono::steady_clock::now();
  const Answer both =
      run_command("(" + program + directory("one") + "& " + program + directory("other") + "& wait)");
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ASSERT_EQ(both.code, 0) << both.text;
  const double one = energy("one")["joules"], other = energy("other")["joules"];
  EXPECT_EQ(energy("one")["node_was_shared"], true);
  EXPECT_EQ(energy("other")["node_was_shared"], true);
  EXPECT_LE(one + other, 1.05 * RunningPowercap::watts * seconds);
  for (const char* job : {"one", "other"})
    EXPECT_LE(energy(job)["joules"], 0.8 * RunningPowercap::watts * energy(job)["seconds"].get<double>())
        << job;
  EXPECT_GT(std::min(one, other), 1);
  std::printf("two jobs in %.2f s of 100 W: %.1f J and %.1f J\n", seconds, one, other);
}

TEST_F(MeteredRuns, OfThreeUnevenJobsOnANodeDoNotClaimMoreThanItTakes) {
  const std::string program =
      MINDPIPE_BINARY " train --config " + (root_ / "tiny.yaml").string() + longer + rapl_;
  const auto start = std::chrono::steady_clock::now();
  const Answer all =
      run_command("(" + program + directory("one") + "& nice -n 5 " + program + directory("other") +
                  "& nice -n 19 " + program + directory("third") + "& wait)");
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ASSERT_EQ(all.code, 0) << all.text;
  double joules = 0;
  for (const char* job : {"one", "other", "third"}) {
    joules += energy(job)["joules"].get<double>();
    EXPECT_EQ(energy(job)["node_was_shared"], true) << job;
  }
  EXPECT_LE(joules, 1.02 * RunningPowercap::watts * seconds);
  std::printf("three jobs in %.2f s of 100 W: %.1f J\n", seconds, joules);
}

TEST_F(MeteredRuns, HaveTheBitsOfRunsWithoutMeters) {
  const std::string all = "train.steps=6 reproducible.data=2 ";
  std::set<std::string> weights;
  std::set<std::vector<double>> traces;
  int number = 0;
  for (const std::string& meter :
       {std::string("energy.meter=none"), std::string("energy.meter=estimate"), rapl_ + "energy.cap=true"})
    for (const int ranks : {1, 4}) {
      const std::string name = "bits" + std::to_string(number++), settings = all + meter + directory(name);
      const Answer trained = ranks == 1
                                 ? run("train --config " + (root_ / "tiny.yaml").string() + " " + settings)
                                 : run_command(on_ranks(ranks, settings + "grid.data=2 grid.pipeline=2"));
      ASSERT_EQ(trained.code, 0) << trained.text;
      EXPECT_EQ(fs::exists(root_ / name / "energy.json"), meter != "energy.meter=none") << meter;
      EXPECT_EQ(losses(name).size(), 6u);
      weights.insert(read(name + "/model.safetensors"));
      traces.insert(losses(name));
    }
  EXPECT_EQ(weights.size(), 1u);
  EXPECT_EQ(traces.size(), 1u);
  EXPECT_GT(weights.begin()->size(), 1000u);
}

TEST_F(MeteredRuns, BelowASecondAreEstimated) {
  const Answer trained = tiny("train.steps=2 " + rapl_);
  ASSERT_EQ(trained.code, 0) << trained.text;
  const nlohmann::json found = energy("run");
  ASSERT_LT(found["seconds"], 1);
  EXPECT_EQ(found["estimated"], true);
  EXPECT_GT(found["joules"], 0);
  EXPECT_THAT(found["meters"].get<std::string>(), HasSubstr("less than a second"));
  EXPECT_THAT(trained.text, HasSubstr("\nenergy (estimated): "));
}

TEST_F(MeteredRuns, OfSupernetsCountSubnets) {
  std::filesystem::current_path(MINDPIPE_SOURCE_DIR);  // from which the configuration names its space
  const Answer trained = run("train --config " MINDPIPE_SOURCE_DIR
                             "/configs/supernet-tiny.yaml train.steps=8 train.evaluate_every=0" +
                             directory("run") + rapl_);
  ASSERT_EQ(trained.code, 0) << trained.text;
  EXPECT_THAT(trained.text, AllOf(HasSubstr("\nenergy"), HasSubstr(" a subnet, ")));
  EXPECT_EQ(energy("run")["subnets"], 8);
  EXPECT_DOUBLE_EQ(energy("run")["joules_per_subnet"], energy("run")["joules"].get<double>() / 8);
  EXPECT_THAT(run("report " + (root_ / "run").string()).text, HasSubstr(" for 8 subnets, "));
}

}  // namespace
}  // namespace mindpipe
