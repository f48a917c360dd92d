#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "paper/table.h"
#include "plan/run_plan.h"

// What cuDNN would plan on GPUs that are not here. Without the library, its frontend or a way to describe a
// GPU these tests are skipped, and say why.
extern "C" {
int plans_on_paper = 1;  // the driver in place of the real one works for programs that export this name
}

namespace mindpipe {
namespace {

class Paper : public testing::Test {
 protected:
  void SetUp() override {
    for (const GpuDescription& gpu : described_gpus()) {
      std::string why_not;
      auto& planner = planners[gpu.name] = make_planner_on_paper(gpu, why_not);
      if (!planner) GTEST_SKIP() << why_not;
    }
  }
  AttentionAnswer ask(const std::string& device, const PlannedAttention& question) {
    return planners.at(device)->ask(graph_of(question));
  }
  std::map<std::string, std::unique_ptr<AttentionPlanner>> planners;
};

struct Known {
  AttentionForm form;
  bool backward;
  const char *hopper, *ampere;  ///< engine; none: refused
  double hopper_mib, ampere_mib;
};

/// Measured with cuDNN 9.19 before these graphs were written.
TEST_F(Paper, EnginesAndWorkspacesAreThoseThatWereMeasured) {
  if (planners.begin()->second->version() / 100 != 919) GTEST_SKIP() << "measured with cuDNN 9.19 only";
  const AttentionForm gpt2{4, 12, 12, 1024, 1024, 64, true}, llama{1, 32, 8, 8192, 8192, 128, true},
      padded{2, 8, 8, 100, 100, 64, false, true}, cross{2, 8, 8, 64, 100, 64, false, true},
      whole{1, 6, 6, 197, 197, 64}, narrow{2, 4, 4, 64, 64, 16, true}, wide{2, 4, 4, 1024, 1024, 80, true},
      shared{2, 4, 2, 1000, 1000, 128, true}, widest{1, 8, 8, 1024, 1024, 256, true},
      width_4{2, 4, 4, 64, 64, 4, true};
  const Known table[] = {
      {gpt2, false, "2", "1", 0, 0},           {gpt2, true, "6", "7", 96.19, 96.19},
      {llama, false, "2", "1", 0, 0},          {llama, true, "6", "7", 4225, 4225},
      {padded, false, "9", "8", 0, 0},         {padded, true, "6", "7", 0.51, 0.51},
      {cross, false, "9", "8", 0, 0},          {whole, false, "9", "8", 0, 0},
      {whole, true, "6", "7", 0.75, 0.75},     {narrow, false, "2", "1", 0, 0},
      {narrow, true, "6", "7", 0.13, 0.06},    {wide, true, "6", "7", 16.03, 16.03},
      {shared, true, "6", "7", 19.94, 19.94},  {widest, true, "6", nullptr, 16.03, 0},
      {width_4, true, nullptr, nullptr, 0, 0},
  };
  for (const Known& known : table)
    for (const char* device : {"h100", "a100"}) {
      const PlannedAttention question(call_of(known.form), known.backward);
      SCOPED_TRACE(fmt::format("{} on {}", question.text(), device));
      const bool hopper = device == std::string("h100");
      const char* engine = hopper ? known.hopper : known.ampere;
      const AttentionAnswer answer = ask(device, question);
      ASSERT_EQ(answer.is_planned, engine != nullptr) << answer.refusal;
      if (engine == nullptr) {
        EXPECT_THAT(answer.refusal, testing::HasSubstr("multiple of 8"));
        continue;
      }
      EXPECT_EQ(engine_number(answer.engine), engine);
      EXPECT_NEAR(static_cast<double>(answer.bytes) / 0x1p20, hopper ? known.hopper_mib : known.ampere_mib,
                  0.0051);
    }
}

TEST_F(Paper, BundledConfigurationsHaveAFusedPlanInBothDirectionsOnAllDevices) {
  for (const std::string& name : bundled_configurations()) {
    int directions[2] = {};
    for (const PaperQuestion& asked : questions_of_file(name))
      for (const auto& [device, planner] : planners) {
        const AttentionAnswer answer = ask(device, asked.question);
        EXPECT_TRUE(answer.is_planned) << device << ": " << asked.question.text() << ": " << answer.refusal;
        ++directions[asked.question.backward];
      }
    EXPECT_GE(directions[0], 3) << name;
    EXPECT_GE(directions[1], 3) << name;
  }
}

/// The formula decides on groups where nobody can be asked, so it is never below what a plan takes; for whole
/// tiles it is what the plan takes.
TEST_F(Paper, TheFormulaIsNeverBelowAPlan) {
  const AttentionForm forms[] = {{3, 4, 2, 200, 200, 128, true},
                                 {1, 8, 8, 64, 100, 64, false, true},
                                 {3, 6, 1, 65, 65, 32, true},
                                 {1, 6, 2, 127, 127, 8, true},
                                 {2, 4, 4, 384, 128, 96, false, false}};
  for (const AttentionForm& form : forms)
    for (const char* device : {"a100", "h100"})
      for (const bool backward : {false, true}) {
        const PaperQuestion asked = question_of(form, backward, "odd");
        const AttentionAnswer answer = ask(device, asked.question);
        SCOPED_TRACE(fmt::format("{}: {}", device, asked.question.text()));
        ASSERT_TRUE(answer.is_planned) << answer.refusal;
        EXPECT_LE(answer.bytes + asked.question.lengths_bytes(), asked.question.formula_bytes());
        if (form.queries % 128 == 0 && form.keys % 128 == 0)
          EXPECT_NEAR(answer.bytes + asked.question.lengths_bytes(), asked.question.formula_bytes(), 1024);
      }
}

/// The heads of a piece lie apart in memory as those of the whole do, and are planned all the same.
TEST_F(Paper, APieceOfHeadsIsPlannedAndTakesItsShare) {
  const AttentionForm llama{1, 32, 8, 8192, 8192, 128, true};
  const AttentionCall call = call_of(llama);
  const AttentionPieces pieces = pieces_of(call, true, {}).value();
  ASSERT_EQ(pieces, (AttentionPieces{1, 4}));
  const PlannedAttention question(call, true, pieces);
  for (const auto& [device, planner] : planners) {
    const AttentionAnswer answer = ask(device, question);
    ASSERT_TRUE(answer.is_planned) << device << ": " << answer.refusal;
    EXPECT_NEAR(answer.bytes, question.formula_bytes(), 1024) << device;
    EXPECT_LT(answer.bytes, std::size_t{1100} << 20) << device;
  }
}

/// What the library can see: these mistakes change its answer, or are refused. Masks and strides it takes as
/// they come; those of a graph are held in kernels/planned_attention_test.cpp.
TEST_F(Paper, MistakesInAGraphAreFoundByItsAnswer) {
  using Graph = AttentionGraph;
  AttentionPlanner& planner = *planners.at("h100");
  const auto graph = [](const AttentionForm& form, bool backward) {
    return graph_of(PlannedAttention(call_of(form), backward));
  };
  const AttentionForm causal{2, 4, 4, 256, 256, 64, true}, padded{2, 4, 4, 200, 200, 64, false, true};
  const Graph forward = graph(causal, false), backward = graph(causal, true),
              of_lengths = graph(padded, false);
  const AttentionAnswer right_forward = planner.ask(forward), right_backward = planner.ask(backward);
  EXPECT_TRUE(right_forward.is_planned && right_backward.is_planned && planner.ask(of_lengths).is_planned);
  const auto is_found = [&](Graph wrong, auto mistake) {
    const AttentionAnswer& right = wrong.backward ? right_backward : right_forward;
    mistake(wrong);
    const AttentionAnswer got = planner.ask(wrong);
    return !got.is_planned || got.engine != right.engine || got.bytes != right.bytes;
  };
  EXPECT_FALSE(is_found(forward, [](Graph&) {})) << "no mistake";
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
  for (const auto& [name, device] : {std::pair<std::string, std::string>{"gpt2-124m", "a100"},
                                     {"gpt2-124m", "h200"},
                                     {"llama-8b", "h100"}}) {
    const Config config = resolve(
        read_config(std::string(MINDPIPE_SOURCE_DIR) + "/configs/" + name + ".yaml",
                    {"device.kind=cuda", "device.description=" + device, "grid.data=1", "grid.tensor=1",
                     "grid.pipeline=1", "reproducible.data=1", "reproducible.tensor=1", "train.batch=4",
                     "train.micro_batch=" + std::string(name == "llama-8b" ? "1" : "4"), "model.layers=2"}));
    const RunPlan plan = make_run_plan(config);
    const Workspace& predicted = plan.footprints.at(0).passes.backend;
    std::size_t largest = 0;
    for (const PlannedAttention& question : predicted.planned) {
      const AttentionAnswer answer = ask(device, question);
      ASSERT_TRUE(answer.is_planned) << answer.refusal;
      largest = std::max(largest, question.lengths_bytes() + answer.bytes);
    }
    EXPECT_GT(largest, 0) << name;
    EXPECT_EQ(predicted.attention, largest) << name << " on " << device;
    EXPECT_FALSE(predicted.attention_is_estimated);
  }
}

}  // namespace
}  // namespace mindpipe
