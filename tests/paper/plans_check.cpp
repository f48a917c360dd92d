// thorough
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "paper/kept_planner.h"
#include "paper/known.h"
#include "paper/table.h"
#include "plan/run_plan.h"
#include "plans/workspace_on_paper.h"
#include "text_model.h"

// What cuDNN would plan on GPUs that are not here. Without the library, its frontend or a way to describe a
// GPU these tests are skipped, and say why.
extern "C" {
int plans_on_paper = 1;  // the driver in place of the real one works for programs that export this name
}

namespace mindpipe {
namespace {

/// Says what all plans took of one core; far more than the minute that they may take is a failure. Other
/// programs beside this one make it half as much again, and slow processors twice as much.
class OneCore : public testing::Environment {
 public:
  void SetUp() override { fmt::print("CTEST_FULL_OUTPUT: the last line says what plans took\n"); }
  void TearDown() override {
    constexpr double wanted = 60, failed = 300;
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    const auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    const double all = seconds(used.ru_utime) + seconds(used.ru_stime);
    fmt::print("all of it took {:.1f} s of one core; plans on paper may take {:.0f}\n", all, wanted);
    EXPECT_LT(all, failed) << "ask a smaller choice of questions";
  }
};
[[maybe_unused]] testing::Environment* const one_core = testing::AddGlobalTestEnvironment(new OneCore);

/// A question that was asked in this process, by this device's name.
using Asked = std::pair<std::string, PlannedAttention>;

/// Planners are made once, and each question is asked once: a plan takes a third of a second.
class Paper : public testing::Test {
 protected:
  void SetUp() override {
    for (const GpuDescription& gpu : described_gpus()) {
      std::string why_not;
      auto& planner = planners()[gpu.name];
      if (!planner) planner = keeping_answers(make_planner_on_paper(gpu, why_not), gpu);
      ASSERT_EQ(why_not.find("driver"), std::string::npos) << "the one in its place fails: " << why_not;
      if (!planner) GTEST_SKIP() << why_not;
    }
  }
  static AttentionPlanner& planner(const std::string& device) { return *planners().at(device); }
  /// The formula decides on pieces where nobody can be asked, so it is never below what a plan takes; for
  /// whole tiles it is what the plan takes. That holds for every answer.
  static const AttentionAnswer& ask(const std::string& device, const PlannedAttention& question) {
    static auto& answers = *new std::map<Asked, AttentionAnswer>;
    const auto [at, is_new] = answers.try_emplace({device, question});
    if (!is_new) return at->second;
    const AttentionAnswer& answer = at->second = planner(device).ask(graph_of(question));
    const std::size_t bytes = answer.bytes + question.lengths_bytes();
    if (!answer.is_planned) return answer;
    EXPECT_LE(bytes, question.formula_bytes()) << device << ": " << question.text();
    if (question.queries % 128 == 0 && question.keys % 128 == 0) {
      EXPECT_NEAR(bytes, question.formula_bytes(), 1024) << device << ": " << question.text();
    }
    return answer;
  }

 private:
  static std::map<std::string, std::unique_ptr<AttentionPlanner>>& planners() {
    static auto& made = *new std::map<std::string, std::unique_ptr<AttentionPlanner>>;
    return made;  // libraries end before what is static here would
  }
};

/// A refusal costs nothing and is asked for on every device. Of the plans each is made on one, and devices
/// take turns; `make plans` compares them all.
TEST_F(Paper, EnginesAndWorkspacesAreThoseThatWereMeasured) {
  if (planner("h100").version() / 100 != known_version) GTEST_SKIP() << "measured with cuDNN 9.19 only";
  const std::vector<std::string> devices{"a100", "h100", "h200"};
  std::map<std::string, int> planned;
  for (std::size_t i = 0; i < known_plans().size(); ++i)
    for (std::size_t d = 0; d < devices.size(); ++d) {
      const KnownPlan& known = known_plans()[i];
      const bool is_refused = (devices[d] == "a100" ? known.ampere : known.hopper) == nullptr;
      if (!is_refused && i % devices.size() != d) continue;
      const PlannedAttention question = question_of(known);
      const AttentionAnswer& answer = ask(devices[d], question);
      EXPECT_EQ(difference(known, devices[d], answer), "") << devices[d] << ": " << question.text();
      planned[devices[d] + (known.backward ? " backward" : " forward")] += answer.is_planned;
    }
  for (const std::string& device : devices)
    for (const char* direction : {" forward", " backward"})
      EXPECT_GE(planned[device + direction], 1) << device << direction;
}

/// Where training drops weights of attention, by a mask that is our own function, evaluations alone ask. An
/// H100 and an H200 take turns, which differ in memory and cache alone, and for tiny models all three devices
/// do; `make plans` asks all of them everything.
TEST_F(Paper, BundledConfigurationsHaveAFusedPlanInBothDirections) {
  std::map<std::string, int> planned;
  std::size_t turn = 0;
  for (const std::string& name : bundled_configurations()) {
    int directions[2] = {};
    for (const PaperQuestion& asked : questions_of_file(name)) {
      const char* hopper = ++turn % 2 == 0 ? "h100" : "h200";
      const std::vector<std::string> devices = name.ends_with("-tiny")
                                                   ? std::vector<std::string>{turn % 3 == 0 ? "a100" : hopper}
                                                   : std::vector<std::string>{"a100", hopper};
      for (const std::string& device : devices) {
        const AttentionAnswer& answer = ask(device, asked.question);
        EXPECT_TRUE(answer.is_planned) << device << ": " << asked.question.text() << ": " << answer.refusal;
        ++planned[device + (asked.question.backward ? " backward" : " forward")];
      }
      ++directions[asked.question.backward];
    }
    EXPECT_GE(directions[0], 1) << name;
    const Config config = read_bundled(name);
    if (block_model(config).attention_dropout > 0) {
      EXPECT_EQ(directions[1], 0) << name;
    } else {
      EXPECT_GE(directions[1], 1) << name;
    }
  }
  EXPECT_EQ(planned.size(), 6) << "both directions on three devices";
  for (const auto& [what, count] : planned) EXPECT_GE(count, 5) << what;
}

/// The words of doctor on a machine without a GPU.
TEST_F(Paper, EveryDescribedGpuIsOneThatAttentionCouldBePlannedFor) {
  EXPECT_THAT(gpus_with_attention(),
              testing::MatchesRegex("a100, h100, h200 \\(cuDNN 9\\.[0-9]+\\.[0-9]+\\)"));
}

/// Half tiles, shared keys, narrow and wide heads, unequal lengths: where the formula could be too small.
TEST_F(Paper, TheFormulaIsNeverBelowAPlan) {
  const AttentionForm forms[] = {{3, 4, 2, 200, 200, 128, true},
                                 {3, 6, 1, 65, 65, 32, true},
                                 {1, 6, 2, 127, 127, 8, true},
                                 {2, 4, 4, 384, 128, 96, false, false}};
  bool is_hopper = false;
  for (const AttentionForm& form : forms) {
    const PlannedAttention question(call_of(form), true);
    const AttentionAnswer& answer = ask(is_hopper ? "h100" : "a100", question);
    EXPECT_TRUE(answer.is_planned) << question.text() << ": " << answer.refusal;
    is_hopper = !is_hopper;
  }
}

/// The heads of a piece lie apart in memory as those of the whole do, and are planned all the same.
TEST_F(Paper, APieceOfHeadsIsPlannedAndTakesItsShare) {
  const AttentionForm llama{1, 32, 8, 8192, 8192, 128, true};
  const AttentionCall call = call_of(llama);
  const AttentionPieces pieces = pieces_of(call, true, {}).value();
  ASSERT_EQ(pieces, (AttentionPieces{1, 4}));
  const PlannedAttention question(call, true, pieces);
  for (const char* device : {"a100", "h200"}) {
    const AttentionAnswer& answer = ask(device, question);
    ASSERT_TRUE(answer.is_planned) << device << ": " << answer.refusal;
    EXPECT_LT(answer.bytes, std::size_t{1100} << 20) << device;
  }
}

/// What the library can see: these mistakes change its answer, or are refused. Masks and strides it takes as
/// they come; those of a graph are held in kernels/planned_attention_test.cpp.
TEST_F(Paper, MistakesInAGraphAreFoundByItsAnswer) {
  using Graph = AttentionGraph;
  const auto question = [](const AttentionForm& form, bool backward) {
    return PlannedAttention(call_of(form), backward);
  };
  const AttentionForm causal{4, 12, 12, 1024, 1024, 64, true}, padded{2, 8, 8, 100, 100, 64, false, true};
  const PlannedAttention forward = question(causal, false), backward = question(causal, true),
                         of_lengths = question(padded, false);
  const auto is_found = [&](const PlannedAttention& asked, auto mistake) {
    const AttentionAnswer& right = ask("h100", asked);
    EXPECT_TRUE(right.is_planned) << right.refusal;
    Graph wrong = graph_of(asked);
    mistake(wrong);
    const AttentionAnswer got = planner("h100").ask(wrong);
    return !got.is_planned || got.engine != right.engine || got.bytes != right.bytes;
  };
  EXPECT_FALSE(is_found(backward, [](Graph&) {})) << "no mistake";
  EXPECT_TRUE(is_found(backward, [](Graph& g) { g.deterministic = false; }));
  EXPECT_TRUE(is_found(backward, [](Graph& g) { g.at(Graph::dq).type = Graph::Type::f32; }));
  EXPECT_TRUE(is_found(forward, [](Graph& g) { g.at(Graph::k).type = Graph::Type::f32; }));
  EXPECT_TRUE(is_found(forward, [](Graph& g) { g.at(Graph::out).strides[3] = 2; }));
  EXPECT_TRUE(is_found(backward, [](Graph& g) { g.at(Graph::v).strides[3] = 64; }));
  EXPECT_TRUE(is_found(backward, [](Graph& g) { g.at(Graph::log_sum).strides[0] *= 2; }));
  EXPECT_TRUE(is_found(forward, [](Graph& g) { g.diagonal = Graph::Diagonal::none; }));
  EXPECT_TRUE(is_found(of_lengths, [](Graph& g) { g.padded = false; }));
}

/// What the ledger of a run predicts is the largest of the table, to the byte: with the lengths that padded
/// samples, and rows that fill no tile, are told.
TEST_F(Paper, TheLedgerHoldsTheLargestPlanOfTheRun) {
  struct Case {
    std::string name, device;
    int micro_batch;
    bool is_padded;
  };
  for (const Case& one : {Case{"gpt2-124m", "a100", 4, false},
                          {"llama-8b", "h200", 1, false},
                          {"vit-base", "h200", 32, true}}) {
    const auto set = [&](const char* key, int value) { return fmt::format("{}={}", key, value); };
    const Config config =
        resolve(read_config(std::string(MINDPIPE_SOURCE_DIR) + "/configs/" + one.name + ".yaml",
                            {"device.kind=cuda", "device.description=" + one.device, "grid.data=1",
                             "grid.tensor=1", "grid.pipeline=1", "reproducible.data=1",
                             "reproducible.tensor=1", set("train.batch", std::max(4, one.micro_batch)),
                             set("train.micro_batch", one.micro_batch), "model.layers=2"}));
    const RunPlan plan = make_run_plan(config);
    const Workspace& predicted = plan.footprints.at(0).passes.backend;
    std::vector<TableRow> rows;
    bool is_padded = false;
    for (const PlannedAttention& question : predicted.planned) {
      rows.push_back({one.device, {one.name, true, question}, ask(one.device, question)});
      is_padded = is_padded || question.padded;
    }
    EXPECT_EQ(is_padded, one.is_padded) << one.name;
    std::size_t largest = 0;
    const auto table = nlohmann::json::parse(table_json(rows, {}, 0));
    for (const auto& row : table.at("plans"))
      largest = std::max(largest, row.at("workspace").get<std::size_t>());
    EXPECT_GT(largest, 0) << one.name;
    EXPECT_EQ(predicted.attention, largest) << one.name << " on " << one.device;
    EXPECT_FALSE(predicted.attention_is_estimated);
  }
}

}  // namespace
}  // namespace mindpipe
