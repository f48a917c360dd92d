#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>

#include "paper/known.h"
#include "plan/run_plan.h"
#include "text_model.h"

// What cuDNN would plan on GPUs that are not here. Without the library, its frontend or a way to describe a
// GPU these tests are skipped, and say why.
extern "C" {
int plans_on_paper = 1;  // the driver in place of the real one works for programs that export this name
}

namespace mindpipe {
namespace {

/// A question that was asked in this process, by this device's name.
using Asked = std::pair<std::string, PlannedAttention>;

/// Planners are made once, and each question is asked once: a plan takes a third of a second.
class Paper : public testing::Test {
 protected:
  void SetUp() override {
    for (const GpuDescription& gpu : described_gpus()) {
      std::string why_not;
      auto& planner = planners()[gpu.name];
      if (!planner) planner = make_planner_on_paper(gpu, why_not);
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

/// Where training drops weights of attention, by a mask that is our own function, evaluations alone ask.
TEST_F(Paper, BundledConfigurationsHaveAFusedPlanInBothDirectionsOnAllDevices) {
  for (const std::string& name : bundled_configurations()) {
    int directions[2] = {};
    for (const PaperQuestion& asked : questions_of_file(name))
      for (const char* device : {"a100", "h100", "h200"}) {
        const AttentionAnswer& answer = ask(device, asked.question);
        EXPECT_TRUE(answer.is_planned) << device << ": " << asked.question.text() << ": " << answer.refusal;
        ++directions[asked.question.backward];
      }
    EXPECT_GE(directions[0], 3) << name;
    const Config config = read_config(std::string(MINDPIPE_SOURCE_DIR) + "/configs/" + name + ".yaml", {});
    if (block_model(config).attention_dropout > 0) EXPECT_EQ(directions[1], 0) << name;
    else EXPECT_GE(directions[1], 3) << name;
  }
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

/// What the ledger of a run predicts is the largest of what the library answers, to the byte.
TEST_F(Paper, TheLedgerHoldsTheLargestPlanOfTheRun) {
  for (const auto& [name, device] :
       {std::pair<std::string, std::string>{"gpt2-124m", "a100"}, {"llama-8b", "h200"}}) {
    const Config config = resolve(
        read_config(std::string(MINDPIPE_SOURCE_DIR) + "/configs/" + name + ".yaml",
                    {"device.kind=cuda", "device.description=" + device, "grid.data=1", "grid.tensor=1",
                     "grid.pipeline=1", "reproducible.data=1", "reproducible.tensor=1", "train.batch=4",
                     "train.micro_batch=" + std::string(name == "llama-8b" ? "1" : "4"), "model.layers=2"}));
    const RunPlan plan = make_run_plan(config);
    const Workspace& predicted = plan.footprints.at(0).passes.backend;
    std::size_t largest = 0;
    for (const PlannedAttention& question : predicted.planned) {
      const AttentionAnswer& answer = ask(device, question);
      ASSERT_TRUE(answer.is_planned) << answer.refusal;
      largest = std::max(largest, question.lengths_bytes() + answer.bytes);
    }
    EXPECT_GT(largest, 0) << name;
    EXPECT_EQ(predicted.attention, largest) << name << " on " << device;
    EXPECT_FALSE(predicted.attention_is_estimated);
  }
}

/// Texts are read in both directions, sources are padded and read by targets of another length, and a class
/// stands before 196 patches.
TEST(Questions, OfModelsThatAreNoDecodersAreAsked) {
  const auto forwards = [](const std::string& name, const std::vector<std::string>& settings = {}) {
    std::string all;
    int backwards = 0;
    for (const PaperQuestion& asked : questions_of_file(name, settings)) {
      backwards += asked.question.backward ? 1 : -1;
      EXPECT_TRUE(asked.is_asked);
      if (!asked.question.backward) all += asked.question.text() + "\n";
    }
    EXPECT_EQ(backwards, 0) << name << ": in both directions";
    return all;
  };
  const std::string heads = "forward of 32 samples, 8 heads on 8, ",
                    padded = heads + "64 queries, 64 keys, width 64, padded\n",
                    decoder = heads + "64 queries, 64 keys, width 64, causal\n";
  EXPECT_EQ(forwards("bert-base"), "forward of 8 samples, 12 heads on 12, 512 queries, 512 keys, width 64\n");
  EXPECT_EQ(forwards("transformer-base"), padded + padded + decoder)
      << "an encoder's own, and of queries that lie apart from keys";
  EXPECT_EQ(forwards("transformer-base", {"data.source_sequence=48"}),
            heads + "48 queries, 48 keys, width 64, padded\n" + heads +
                "64 queries, 48 keys, width 64, padded\n" + decoder);
  EXPECT_EQ(forwards("vit-base"),
            "forward of 32 samples, 12 heads on 12, 197 queries, 197 keys, width 64, padded\n");
  std::set<std::int64_t> rows;
  for (const PaperQuestion& asked : questions_of_configuration("vit-base")) {
    rows.insert(asked.question.keys);
    EXPECT_TRUE(asked.question.padded) << asked.question.text();
  }
  EXPECT_EQ(rows, std::set<std::int64_t>{197}) << "padding of rows for a tensor degree is not looked at";
}

/// Gradients of attention that drops weights are in the table all the same, with the reason.
TEST(Questions, WithheldFromTheLibraryAreListed) {
  for (const auto& [name, drops] : {std::pair{"evolved-transformer-base", true}, {"bert-base", false}}) {
    int forwards = 0, backwards = 0, withheld = 0;
    for (const PaperQuestion& one : questions_of_configuration(name)) {
      EXPECT_NE(one.is_asked, one.withheld != "") << one.question.text();
      ++(one.withheld != "" ? withheld : one.question.backward ? backwards : forwards);
      EXPECT_TRUE(one.withheld == "" || one.question.backward) << one.question.text();
    }
    EXPECT_GE(forwards, 10) << name;
    EXPECT_EQ(drops ? withheld : backwards, forwards) << name;
    EXPECT_EQ(drops ? backwards : withheld, 0) << name;
  }
}

/// What a machine with a GPU is asked, from wherever the configurations were copied to.
TEST(Questions, OfACheckAreThoseOfEveryConfigurationAndOddOnes) {
  std::map<std::string, int> from;
  bool is_padded = false;
  for (const PaperQuestion& asked : questions_of_a_check()) {
    EXPECT_TRUE(asked.is_asked);
    ++from[asked.from];
    is_padded = is_padded || asked.question.padded;
  }
  for (const std::string& name : bundled_configurations()) EXPECT_GE(from[name], 2) << name;
  EXPECT_GE(from["odd"], 8);
  EXPECT_TRUE(is_padded);

  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "mindpipe-copied-configs";
  std::filesystem::create_directories(folder);
  std::filesystem::copy_file(std::string(MINDPIPE_SOURCE_DIR) + "/configs/demo.yaml", folder / "copied.yaml",
                             std::filesystem::copy_options::overwrite_existing);
  setenv("MINDPIPE_CONFIGS", folder.c_str(), 1);
  EXPECT_EQ(bundled_configurations(), std::vector<std::string>{"copied"});
  EXPECT_EQ(questions_of_file("copied").size(), 2);
  unsetenv("MINDPIPE_CONFIGS");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace mindpipe
