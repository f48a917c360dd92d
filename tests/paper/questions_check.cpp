// thorough
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "device_description.h"
#include "paper/table.h"

// Which questions are asked on paper, and what becomes of their answers; nobody is asked here.
namespace mindpipe {
namespace {

std::string file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(std::string(MINDPIPE_SOURCE_DIR) + "/" + path).rdbuf();
  return text.str();
}

/// What gpu-check gives to its part "paper".
double seconds_of_the_check() {
  std::smatch found;
  const std::string parts = file("scripts/gpu_check/parts.py");
  const std::regex part("\"paper\"[^)]*, ([0-9]+),\\s+test\\(\"test_paper_on_gpu\"\\)");
  return std::regex_search(parts, found, part) ? std::stod(found[1]) : 0;
}

/// Plans everything, in so many bytes.
class Willing final : public AttentionPlanner {
 public:
  int version() const override { return 91900; }
  AttentionAnswer ask(const AttentionGraph&) override {
    ++asked;
    return {.is_planned = true, .is_supported = true, .engine = "eng6_k24=26", .bytes = 4096};
  }
  int asked = 0;
};

/// Each file is asked about, or there is a reason: none is left out in silence.
TEST(Questions, OfEveryBundledFileAreAskedOrItIsSaidWhyNot) {
  const auto without = configurations_without_questions();
  const std::vector<std::string> names = bundled_configurations();
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(MINDPIPE_SOURCE_DIR) + "/configs")) {
    if (entry.path().extension() != ".yaml") continue;
    const std::string name = entry.path().stem();
    const bool is_asked = std::find(names.begin(), names.end(), name) != names.end();
    EXPECT_NE(is_asked, without.contains(name)) << name;
    if (is_asked) {
      EXPECT_FALSE(questions_of_file(name).empty()) << name;
    }
  }
  for (const char* tiny : {"bert-tiny", "evolved-transformer-tiny", "transformer-tiny", "vit-tiny"})
    EXPECT_THAT(names, testing::Contains(tiny));
  EXPECT_THAT(without.at("gpt-tiny"), testing::HasSubstr("f32"));
  EXPECT_TRUE(questions_of_file("gpt-tiny").empty());
  EXPECT_THAT(without.at("wide-resnet-tiny"), testing::HasSubstr("no attention"));
  EXPECT_EQ(without.size(), 10);
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
  std::set<PlannedAttention> once;
  for (const PaperQuestion& asked : questions_of_a_check())
    EXPECT_TRUE(once.insert(asked.question).second) << asked.question.text();
  for (const std::string& name : bundled_configurations())
    for (const PaperQuestion& asked : questions_of_file(name))
      EXPECT_TRUE(once.contains(asked.question)) << name << ": " << asked.question.text();
  constexpr double seconds_of_a_plan = 0.5, planners = 2;
  EXPECT_LE(planners * seconds_of_a_plan * static_cast<double>(questions_of_a_check().size()),
            seconds_of_the_check());
  EXPECT_GE(from["odd"], 4);
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

/// A plan that was made for another configuration has its time, which is counted once.
TEST(Tables, SayWhatAPlanTookAndWhoAskedItBefore) {
  const PlannedAttention question(call_of({.samples = 32, .queries = 197, .keys = 197}), true);
  ASSERT_TRUE(question.padded);
  Willing planner;
  std::vector<TableRow> rows = ask_all("h200", planner,
                                       {{"first", true, question},
                                        {"second", true, question},
                                        {"third", false, question, "a reason"},
                                        {"fourth", false, PlannedAttention(call_of({}), true), "a reason"}},
                                       [](const TableRow&) {});
  EXPECT_EQ(planner.asked, 1);
  ASSERT_EQ(rows.size(), 4);
  EXPECT_GT(rows[0].seconds, 0);
  EXPECT_EQ(rows[1].seconds, rows[0].seconds);
  EXPECT_EQ(rows[1].asked.from, "second");
  EXPECT_FALSE(rows[0].asked_before);
  EXPECT_TRUE(rows[1].asked_before);
  EXPECT_EQ(rows[3].answer.refusal, "not asked: a reason");
  rows[0].seconds = rows[1].seconds = 40;
  EXPECT_THAT(counts_text({rows[0], rows[1]}), testing::HasSubstr("; 40 s"));
  EXPECT_THAT(row_text(rows[1]), testing::HasSubstr(" 40.00  "));
}

/// Workspace is what the ledger counts: lengths in front of the plan's own.
TEST(Tables, HaveTheWorkspaceWithLengths) {
  const PlannedAttention question(call_of({.samples = 32, .queries = 197, .keys = 197}), true);
  Willing planner;
  const auto rows = ask_all("h200", planner, {{"padded", true, question}}, [](const TableRow&) {});
  EXPECT_EQ(workspace_of(rows[0]), 4096 + 512);
  const auto row = nlohmann::json::parse(table_json(rows, {}, 91900)).at("plans").at(0);
  EXPECT_EQ(row.at("workspace"), 4096 + 512);
  EXPECT_EQ(row.at("formula"), question.formula_bytes());
}

/// One plan, pieces and our own kernels everywhere; cuDNN's ordered path where it would have one.
TEST(Tables, PriceTheWaysThatADeviceHas) {
  const AttentionForm llama{.samples = 1,
                            .query_heads = 32,
                            .key_heads = 8,
                            .queries = 8192,
                            .keys = 8192,
                            .width = 128,
                            .causal = true};
  for (const GpuDescription& gpu : described_gpus()) {
    const std::vector<PlanPrice> prices = prices_of(gpu.name, llama);
    const auto json = nlohmann::json::parse(table_json({}, prices, 91900)).at("prices");
    ASSERT_EQ(json.size(), prices.size());
    int ordered = 0;
    for (std::size_t i = 0; i < prices.size(); ++i) {
      EXPECT_EQ(json[i].at("device"), gpu.name);
      EXPECT_EQ(json[i].at("way"), prices[i].way);
      EXPECT_GT(json[i].at("seconds"), 0);
      EXPECT_THAT(price_text(prices), testing::HasSubstr(prices[i].way));
      ordered += prices[i].way.find("ordered") != std::string::npos ? 1 : 0;
    }
    EXPECT_EQ(ordered, gpu.name == "a100" ? 0 : 1) << gpu.name;
    EXPECT_EQ(prices.size(), 3 + ordered) << gpu.name;
  }
}

}  // namespace
}  // namespace mindpipe
