// thorough
#include "app/plan/plan_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "app/plan/grid_choice.h"
#include "app/plan/open_choice.h"
#include "config/profile.h"
#include "core/check.h"
#include "core/text.h"
#include "energy/made_powercap.h"
#include "plan/layout_trial.h"
#include "plan/priced_blocks.h"
#include "plan/run_plan.h"
#include "plan/searched_settings.h"
#include "program/partition.h"
#include "state/layout.h"

namespace mindpipe {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

std::string file_of(const std::string& name) {
  return std::string(MINDPIPE_SOURCE_DIR) + "/configs/" + name + ".yaml";
}

/// A search as the command does it.
struct Searched {
  WrittenKeys written;
  Config config;
  SearchFreedom free;
  LayoutSearch search;
  int ranks;
  Searched(const std::string& name, int job, const std::vector<std::string>& overrides)
      : config(read_config(file_of(name), overrides, written)),
        free(freedom_of(config, written)),
        search(search_layouts(config, job, free)),
        ranks(job) {}
  std::string text(int top = 5) {
    PricedBlocks blocks;
    return search_text(config, ranks, free, search, blocks, top);
  }
  std::string json() const { return search_json(config, ranks, free, search); }
  const LayoutCandidate& best() const { return search.all[search.best.front()]; }
};

const std::vector<std::string> any_grid{"device.kind=cuda", "grid=auto"};

TEST(PlanSearch, FreeIsWhatNobodyWroteOrCalledAuto) {
  const SearchFreedom free = Searched("llama-8b", 64, {"device.kind=cuda", "schedule.kind=1f1b"}).free;
  EXPECT_FALSE(free.pipeline);
  EXPECT_TRUE(free.data) << "auto in the file";
  EXPECT_FALSE(free.tensor);
  EXPECT_FALSE(free.schedule);
  EXPECT_TRUE(free.chunks);
  EXPECT_TRUE(free.cuts);
}

TEST(PlanSearch, TellsTheChoiceItsReasonsAndWhatElseThereWas) {
  Searched searched("gpt2-1.5b", 64, any_grid);
  const std::string text = searched.text();
  EXPECT_THAT(text, AllOf(HasSubstr("64 ranks, priced for the device h200"), HasSubstr("\n  grid.pipeline="),
                          ContainsRegex("\nstep [0-9.]+ ms \\(simulated\\), [0-9.]+M tokens/s\n"),
                          HasSubstr("where the step goes"), HasSubstr("what binds: stage "),
                          HasSubstr("\nbits: the same as of every layout"),
                          ContainsRegex("\n  grid.pipeline=16: [0-9.]+ ms, [0-9.]+ % longer"),
                          HasSubstr("refused for grid.tensor, as: grid.tensor is 2 and model.heads 25")))
      << text;
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 40) << text;
}

TEST(PlanSearch, FindsTheBestOfFewCuts) {
  for (const auto& [name, stages] : {std::pair{"wide-resnet-tiny", 3}, {"wide-resnet-16-4", 4}}) {
    const Searched searched(name, stages,
                            {"grid.pipeline=" + std::to_string(stages), "grid.data=1", "grid.tensor=1",
                             "schedule.kind=1f1b", "device.description=core"});
    const int blocks =
        make_run_plan(with_layout(searched.config, searched.best().layout)).outline.all_blocks();
    const std::vector<std::vector<int>> cuts = every_cut(blocks, stages, 256);
    EXPECT_GT(cuts.size(), 5U) << name;
    for (const std::vector<int>& cut : cuts) {
      LayoutCandidate other{.layout = searched.best().layout};
      other.layout.cuts.assign(cut.begin() + 1, cut.end() - 1);
      simulate_layout(searched.config, other);
      EXPECT_LE(static_cast<double>(searched.best().step), 1.001 * static_cast<double>(other.step))
          << name << ": [" << joined(searched.best().layout.cuts) << "] against ["
          << joined(other.layout.cuts) << "]";
    }
  }
}

TEST(PlanSearch, SaysOfNoValueThatNoneFitsWhereOneMayFit) {
  Searched searched(
      "llama-8b", 64,
      {"device.kind=cuda", "grid=auto", "schedule.kind=auto", "schedule.chunks=auto", "train.zero=auto",
       "train.recompute=auto", "train.sequence_parallel=auto", "memory.device_limit=30GiB"});
  const std::string text = searched.text();
  EXPECT_THAT(text, AllOf(HasSubstr("\n  grid.tensor=4: "), Not(HasSubstr("grid.tensor=4: none was found"))))
      << text;
}

TEST(PlanSearch, ALimitLeavesOutNothingThatFits) {
  const Searched searched("gpt2-1.5b", 64, any_grid);  // its blocks are recomputed
  for (const LayoutCandidate& one : searched.search.all) {
    if (one.fate != LayoutCandidate::Fate::simulated || one.memory == 0) continue;
    EXPECT_LE(one.least_memory, one.memory) << words_of(one.layout, searched.free);
  }
  std::vector<std::string> limited = any_grid;
  limited.push_back(fmt::format("memory.device_limit={}", searched.best().memory));
  EXPECT_EQ(Searched("gpt2-1.5b", 64, limited).best().step, searched.best().step);
}

TEST(PlanSearch, NoLayoutNeedsLessMemoryThanItsBoundSays) {
  for (const char* recompute : {"none", "block"}) {
    Searched searched("gpt2-124m", 8,
                      {"device.kind=cuda", "grid=auto", "train.batch=32", "train.zero=1",
                       "train.sequence_parallel=false", fmt::format("train.recompute={}", recompute)});
    int compared = 0;
    for (LayoutCandidate one : searched.search.all) {
      simulate_layout(searched.config, one);
      if (one.memory == 0) continue;
      ++compared;
      EXPECT_LE(one.least_memory, one.memory) << words_of(one.layout, searched.free) << ' ' << recompute;
    }
    EXPECT_GT(compared, 20);
  }
}

TEST(PlanSearch, TimesOfLayoutsAreThoseOfTheirWholePlans) {
  Searched searched("gpt2-1.5b", 64, any_grid);
  int compared = 0;
  for (const LayoutCandidate& one : searched.search.all) {
    if (one.fate != LayoutCandidate::Fate::simulated || ++compared > 12) continue;
    LayoutCandidate whole{.layout = one.layout};
    simulate_layout(searched.config, whole);
    EXPECT_EQ(whole.step, one.step) << words_of(one.layout, searched.free);
    EXPECT_EQ(whole.work, one.work) << words_of(one.layout, searched.free);
  }
  EXPECT_GT(compared, 5);
}

TEST(PlanSearch, ASupernetsChoiceIsTheBestOfItsWholeSpace) {
  const char* open_batch = "train.micro_batch=auto";
  for (const auto& [name, more] : {std::pair("supernet-tiny", ""),
                                   {"supernet-tiny", open_batch},
                                   {"supernet-dates", ""},
                                   {"supernet-pictures-tiny", ""}}) {
    std::filesystem::current_path(MINDPIPE_SOURCE_DIR);  // from which files name their spaces
    Searched searched(name, 4, {"grid=auto", *more == 0 ? "grid.supernet=auto" : more});
    std::set<int> micro_batches;
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    int planned = 0;
    for (LayoutCandidate one : searched.search.all) {
      if (one.fate == LayoutCandidate::Fate::refused) continue;
      simulate_layout(searched.config, one);
      if (one.fate != LayoutCandidate::Fate::simulated) continue;
      ++planned;
      micro_batches.insert(one.layout.micro_batch);
      EXPECT_LE(one.bound, one.step) << words_of(one.layout, searched.free) << ": rooms save little";
      least = std::min(least, one.step);
    }
    EXPECT_GT(planned, 4) << name;
    EXPECT_EQ(micro_batches.size() > 1, more == open_batch) << name;
    EXPECT_LE(static_cast<double>(searched.best().step), equal_costs * static_cast<double>(least)) << name;
    EXPECT_EQ(num_ranks(degrees_of(with_grid(searched.config, 4).grid)), 4) << "grid: auto";
    const std::string text = searched.text();
    EXPECT_THAT(text, AllOf(HasSubstr("grid.supernet="), HasSubstr(" subnets/s (simulated), "),
                            HasSubstr("where the time goes, in the mean of all ranks: work ")))
        << text;
  }
}

TEST(PlanSearch, APriceTableHasPricesOfOneMicroBatch) {
  std::filesystem::current_path(MINDPIPE_SOURCE_DIR);
  EXPECT_THAT(
      [] {
        Searched("supernet-tiny", 4, {"grid=auto", "train.micro_batch=auto", "supernet.prices=h200"});
      },
      testing::ThrowsMessage<Error>(
          HasSubstr("supernet.prices = h200 has the prices of one size of micro-batch")));
}

TEST(PlanSearch, ItsWordsAreTheLayoutAsSettings) {
  const Searched searched("gpt2-1.5b", 64, any_grid);
  std::vector<std::string> overrides = any_grid;
  std::string words = words_of(searched.best().layout, searched.free), word;
  EXPECT_THAT(words, Not(HasSubstr("auto")));
  for (std::size_t begin = 0; begin < words.size();) {  // cuts have spaces in their brackets
    std::size_t end = words.find(' ', begin);
    while (end != std::string::npos && words[end - 1] == ',') end = words.find(' ', end + 1);
    overrides.push_back(words.substr(begin, end - begin));
    begin = end == std::string::npos ? words.size() : end + 1;
  }
  const Config typed = read_config(file_of("gpt2-1.5b"), overrides);
  EXPECT_EQ(to_yaml(resolve(typed)), to_yaml(with_layout(searched.config, searched.best().layout)));
}

TEST(PlanSearch, WritesEveryLayoutWithItsTimeBoundOrReason) {
  const Searched searched("gpt2-1.5b", 64, any_grid);
  const auto json = nlohmann::json::parse(searched.json());
  EXPECT_EQ(json["candidates"].size(), searched.search.all.size());
  EXPECT_EQ(json["chosen"]["step_ns"], searched.best().step);
  for (const auto& one : json["candidates"]) {
    EXPECT_GT(one["bound_ns"], 0);
    EXPECT_EQ(one["outcome"] == "simulated", one.contains("step_ns")) << one;
  }
  EXPECT_EQ(Searched("gpt2-1.5b", 64, any_grid).json(), searched.json());
}

TEST(PlanSearch, SaysWhatIsMissingLeastWhereNothingFits) {
  Searched searched("llama-8b", 8, {"device.kind=cuda", "memory.device_limit=1GiB", "grid.pipeline=auto"});
  try {
    searched.text();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::out_of_memory);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("no layout of 8 ranks fits into memory.device_limit"),
                                    ContainsRegex("short of 1 GiB by [0-9.]+ GiB")));
  }
}

TEST(PlanSearch, SeveralDegreesThatAreAutoBecomeTheFastestOnPaper) {
  std::vector<std::string> overrides = any_grid;
  overrides.emplace_back("schedule.kind=1f1b");
  const Config config = read_config(file_of("gpt2-1.5b"), overrides);
  const SearchFreedom grids{.pipeline = true, .data = true, .tensor = true};
  const LayoutSearch search = search_layouts(config, 16, grids);
  const Coord fastest = search.all[search.best.front()].layout.grid;
  EXPECT_EQ(degrees_of(with_grid(config, 16).grid), fastest);
  const Config all =
      read_config(file_of("gpt2-1.5b"), {"device.kind=cuda", "grid=auto", "schedule.kind=1f1b"});
  EXPECT_EQ(degrees_of(with_grid(all, 16).grid), fastest);
}

/// The program on two ranks; what it printed.
std::string on_two_ranks(const std::string& arguments) {
  const std::string root = MINDPIPE_SOURCE_DIR;  // where data/ lies
  const std::string command = "cd " + root + " && tests/run_mpi.sh 2 " MINDPIPE_BINARY " " + arguments +
                              " --config " + file_of("demo") + " grid=auto 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  std::string text;
  std::array<char, 4096> piece{};
  while (const std::size_t bytes = fread(piece.data(), 1, piece.size(), pipe))
    text.append(piece.data(), bytes);
  pclose(pipe);
  return text;
}

TEST(PlanSearch, MeasuresTheBestFewInTheJobAndWritesTheFastest) {
  const std::string file = testing::TempDir() + "fastest.yaml";
  const std::string text = on_two_ranks("plan --search --measure 2 --output " + file);
  EXPECT_THAT(text, ContainsRegex("simulated +measured .*\n +[0-9.]+ ms +[0-9.]+ m?s  grid.pipeline="))
      << text;
  EXPECT_THAT(text,
              ContainsRegex("(take the fastest here: grid.pipeline=|the best on paper is the fastest)"));
  EXPECT_EQ(num_ranks(degrees_of(read_config(file, {}).grid)), 2);
}

TEST(ProfileVerb, MeasuresPricesThatPlansAndEmulatedRanksTake) {
  const std::string file = testing::TempDir() + "profile_of_demo.yaml";
  const RunningPowercap node;
  const std::string told = on_two_ranks(
      "profile --budget 2s energy.meter=rapl energy.powercap=" + node.root() + " --output " + file);
  EXPECT_THAT(told, ContainsRegex("[0-9]+ prices, [0-9.]+ times as long as described")) << told;
  EXPECT_THAT(told, ContainsRegex("\n. embedding, tensor 1: forward .*within [0-9.]+ %;")) << told;
  EXPECT_THAT(told, ContainsRegex("\npackage-0, .*: the job took [1-9][0-9]+ W here in the mean\n")) << told;
  const Profile profile = read_profile(file);
  EXPECT_EQ(profile.ranks, 2);
  EXPECT_GT(profile.passes.size(), 8U) << "two numbers of tensor ranks, with and without recomputation";
  EXPECT_GT(profile.rate, 1e7);
  const std::string text = on_two_ranks("plan --search device.profile=" + file);
  EXPECT_THAT(text, HasSubstr("(device.profile: " + profile.machine + ", 2 ranks of ")) << text;
  EXPECT_THAT(text, Not(HasSubstr("which are estimated"))) << "the profile has all that a search could need";
  const std::string other = on_two_ranks("plan --search train.micro_batch=1 device.profile=" + file);
  EXPECT_THAT(other, ContainsRegex("it lacks blocks with [0-9.]+ % of the time of passes")) << other;
}

TEST(PlanSearch, RefusesToMeasureLayoutsOfOtherNumbersOfRanks) {
  EXPECT_THAT(on_two_ranks("plan --search --measure 2 --ranks 8"),
              HasSubstr("plan --measure runs layouts of 8 ranks, and this job has 2 (start 8)"));
}

}  // namespace
}  // namespace mindpipe
