#include "app/plan_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <filesystem>

#include "app/plan/dry_run.h"
#include "app/run/run.h"
#include "core/check.h"
#include "plan/memory_limits.h"
#include "runtime/worker.h"

namespace mindpipe {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

Config config(const std::string& name, std::vector<std::string> overrides = {}) {
  return read_config(std::string(MINDPIPE_SOURCE_DIR) + "/configs/" + name + ".yaml", overrides);
}

int count_lines(const std::string& text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

TEST(StepLimit, LeavesALongStepTheTimeThatItNeeds) {
  EXPECT_EQ(step_limit(4, 100, 100), 4);
  EXPECT_EQ(step_limit(0, 0, 1), 300);
  EXPECT_EQ(step_limit(0, 0, 3360), 30 * 3360) << "GPT-2 124M with its batch of 480 on one core";
  EXPECT_EQ(step_limit(0, 3000, 10), 30'000);
  EXPECT_EQ(step_limit(0, 2, 3360), 300) << "known now, whatever the paper said";
}

TEST(Plan, TellsStepBubbleAndMemoryOfEveryStageOfAnyNumberOfRanks) {
  const std::string text =
      plan_text(config("gpt2-124m", {"grid.pipeline=4", "grid.data=2", "grid.tensor=1"}), 8, true);
  EXPECT_THAT(text, HasSubstr("8 ranks (supernet 1 x pipeline 4 x data 2 x tensor 1)"));
  EXPECT_THAT(text, ContainsRegex("step [0-9]+[^,]*, [0-9.]+[kM]? tokens/s")) << text;
  EXPECT_THAT(text, HasSubstr("\nlinks (device.links): 10 GB/s after 2.0 us\n")) << text;
  EXPECT_EQ(count_lines(text), 7 + 4) << text;
  EXPECT_THAT(text, ContainsRegex("\nevaluation of a batch: [0-9]+ min [0-9]+ s\n")) << text;
  EXPECT_THAT(text, ContainsRegex("\n3 +[0-9]+-[0-9]+ +[0-9.]+% +[0-9.]+% +1 "))
      << "the last stage of 1f1b holds one tape\n"
      << text;
  EXPECT_THAT(text, ContainsRegex("\n0 +0-[0-9]+ +[0-9.]+% +[0-9.]+% +4 "))
      << "the first holds as many as there are stages\n"
      << text;
}

TEST(DryRun, ShowsBlocksThatHaveNoParametersToo) {
  std::filesystem::current_path(MINDPIPE_SOURCE_DIR);  // from which the file names its space
  const Config chosen = config("subnet-tiny", {"model.choice=[5, 3, 4, 5, 3, 4, 1, 0, 3, 1]"});
  const std::string text = dry_run_text(chosen, make_run_plan(chosen));
  EXPECT_THAT(text, ContainsRegex("\nblocks\\.0\\.5 +0  +0  ")) << text;
  EXPECT_THAT(text, ContainsRegex("\nblocks\\.1\\.3 +16512  +0  ")) << text;
}

TEST(Plan, TellsWhatNoTensorRankIsSpared) {
  const auto text = [](const std::string& name, int tensor) {
    return plan_text(
        config(name, {fmt::format("grid.tensor={}", tensor), fmt::format("reproducible.tensor={}", tensor)}),
        tensor, true);
  };
  const std::string evolved = text("evolved-transformer-dates", 2);
  EXPECT_THAT(evolved,
              HasSubstr("\nundivided over tensor: every rank computes 100 % of encoder.N.glu, 100 % of "
                        "encoder.N.convolution, 100 % of decoder.N.convolution, 100 % of "
                        "decoder.N.mlp, "))
      << evolved;
  EXPECT_THAT(evolved, ContainsRegex(", 3[0-9] % of the model's operations\n")) << evolved;
  EXPECT_THAT(text("wide-resnet-tiny", 2),
              HasSubstr("\nundivided over tensor: every rank computes 100 % of stem, 4 % of group2.N, 4 % of "
                        "group3.N, 3 % of the model's operations\n"));
  EXPECT_THAT(text("wide-resnet-16-4", 2),
              HasSubstr(" of stem, 2 % of group1.0, 4 % of group2.0, 4 % of group3.0, "))
      << "the first block of a group alone has a shortcut that nobody cuts";
  EXPECT_THAT(text("evolved-transformer-dates", 1), testing::Not(HasSubstr("undivided")));
  EXPECT_THAT(text("gpt-tiny", 2), testing::Not(HasSubstr("undivided")));
}

TEST(Plan, WithoutSimulationItTellsOrderAndMemoryAndNoTimes) {
  const std::string text =
      plan_text(config("gpt-tiny", {"grid.pipeline=2", "train.batch=8", "train.micro_batch=2"}), 2, false);
  EXPECT_THAT(text, HasSubstr("\n0      F0 F1 B0 F2 B1 F3 B2 B3\n"));
  EXPECT_THAT(text, HasSubstr("\n1      F0 B0 F1 B1 F2 B2 F3 B3\n"));
  EXPECT_THAT(text,
              HasSubstr("\nan evaluation: passes of each stage in order\n0      F0 F1 F2 F3\n1      F0 "))
      << text;
  EXPECT_THAT(text, ContainsRegex(
                        "eval by itself needs\nstage .*\n0 +[0-9-]+ +1 +[0-9.]+ [kKM]iB +0 bytes +0 bytes "))
      << "values, and neither gradients nor moments\n"
      << text;
  for (const char* word : {"tapes", "activations", "total"}) EXPECT_THAT(text, HasSubstr(word));
  for (const char* word : {"bubble", "tokens/s", "simulated"})
    EXPECT_THAT(text, testing::Not(HasSubstr(word)));
  EXPECT_THAT(plan_text(config("gpt-tiny", {"grid.pipeline=4", "schedule.kind=zb-v"}), 4, false),
              testing::AllOf(HasSubstr(" F0.7 I0.7 "), HasSubstr(" B1.0 ")))
      << "nobody waits for the gradient of what enters stage 0";
  EXPECT_THAT(
      plan_text(config("gpt-tiny", {"grid.pipeline=4", "schedule.kind=zb-v", "train.recompute=[2, 3]"}), 4,
                false),
      HasSubstr("blocks that are computed again (train.recompute: [2, 3]) put no weight gradients off"));
  EXPECT_THAT(
      plan_text(config("gpt-tiny", {"grid.pipeline=2", "schedule.kind=interleaved", "schedule.chunks=2"}), 2,
                false),
      HasSubstr(" F0.0 F1.0 F0.2 "));
}

TEST(Plan, ForAGpuIsPricedForOne) {
  const std::string gpu = plan_text(config("gpt2-124m", {"device.kind=cuda", "grid.data=1"}), 1, true),
                    core = plan_text(config("gpt2-124m", {"grid.data=1"}), 1, true);
  EXPECT_THAT(gpu, HasSubstr("for the device h200 (device.description)"));
  EXPECT_THAT(core, HasSubstr("for the device core (device.description)"));
  EXPECT_THAT(
      plan_text(config("gpt2-124m", {"device.kind=cuda", "device.description=a100", "grid.data=1"}), 1, true),
      HasSubstr("a100"));
  const auto step = [](const Config& c) { return make_run_plan(on_paper(c, 1)).training.expected.step; };
  EXPECT_LT(100 * step(config("gpt2-124m", {"device.kind=cuda", "grid.data=1"})),
            step(config("gpt2-124m", {"grid.data=1"})));
}

TEST(Plan, SaysWhatAttentionMayTakeAndWhoComputesWhatWouldTakeMore) {
  const auto text = [](std::vector<std::string> more, const std::string& name = "gpt2-124m") {
    more.insert(more.end(), {"device.kind=cuda", "device.description=instant", "grid.data=1"});
    const std::string all = plan_text(config(name, more), 1, false);
    const std::size_t begin = all.find("attention: ");
    return begin == std::string::npos ? "" : all.substr(begin, all.find('\n', begin) - begin);
  };
  const std::string pieces =
                        "and what would take more runs in pieces, or by our own kernels where no piece is "
                        "small enough (device.attention_beyond)",
                    own = "and what would take more is computed by our own kernels (device.attention_beyond)";
  EXPECT_THAT(
      text({}),
      AllOf(StartsWith("attention: forwards by plans of cuDNN, backwards by plans of cuDNN; plans take "),
            HasSubstr("estimated ("),
            EndsWith("; a plan may take 2 GiB (device.attention_workspace), " + pieces)));
  EXPECT_THAT(text({"device.attention_beyond=own", "device.attention_workspace=1 GiB"}),
              EndsWith("a plan may take 1 GiB (device.attention_workspace), " + own));
  const std::string beyond = "backwards by our own kernels (beyond device.attention_workspace)";
  EXPECT_THAT(
      text({"device.attention_beyond=own", "device.attention_workspace=1 MiB"}),
      AllOf(StartsWith("attention: forwards by plans of cuDNN, " + beyond + "; plans take 1 KiB at most"),
            EndsWith("a plan may take 1 MiB (device.attention_workspace), " + own)));
  EXPECT_THAT(
      text({"device.attention_workspace=100 MiB", "train.batch=1", "train.micro_batch=1",
            "reproducible.data=1", "grid.pipeline=1", "grid.tensor=1", "reproducible.tensor=1"},
           "llama-8b"),
      AllOf(StartsWith("attention: forwards by plans of cuDNN, " + beyond + "; plans take 1 KiB at most"),
            EndsWith("a plan may take 100 MiB (device.attention_workspace), " + pieces)));
  EXPECT_EQ(text({"device.attention_workspace=0"}),
            "attention: forwards by our own kernels (beyond device.attention_workspace), " + beyond +
                ", without working memory; a plan may take 0 bytes (device.attention_workspace), " + pieces);
  EXPECT_EQ(
      text({"train.precision=f32"}),
      "attention: forwards by our own kernels (f32, dropout, or heads that are not planned), backwards by "
      "our own kernels (f32, dropout, or heads that are not planned), without working memory");
  EXPECT_EQ(text({"reproducible.data=1"}, "wide-resnet-tiny"), "") << "a model without attention";
}

/// What memory will be needed is marked where a part of it is a formula.
TEST(Plan, AnEstimateOfAttentionIsMarkedWhereMemoryIsTooSmall) {
  const auto sentence = [](std::vector<std::string> more) -> std::string {
    more.insert(more.end(), {"device.description=instant", "grid.data=1"});
    const RunPlan plan = make_run_plan(on_paper(config("gpt2-124m", more), 1));
    try {
      require_fit(plan, 1 << 20);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(sentence({"device.kind=cuda"}),
              ContainsRegex("Predicted .attention's [0-9.]+ MiB of the workspace are estimated.:\n"));
  EXPECT_THAT(sentence({}), AllOf(HasSubstr("Predicted:\n"), testing::Not(HasSubstr("estimated"))));
}

TEST(Plan, IsPricedForTheLinksOfTheConfiguration) {
  const auto text = [](std::vector<std::string> more) {
    more.insert(more.end(), {"device.kind=cuda", "grid.pipeline=2", "grid.data=8", "train.batch=64",
                             "train.micro_batch=2"});
    return plan_text(config("gpt2-124m", more), 16, true);
  };
  EXPECT_THAT(text({}), HasSubstr("links (device.links): 350 GB/s after 8.0 us within a node of 8 ranks, 45 "
                                  "GB/s after 15.0 us between nodes\n"));
  const std::vector<std::string> slow{"device.links.ranks_per_node=4",
                                      "device.links.rate_between_nodes=1.25e9",
                                      "device.links.latency_between_nodes=5e-5"};
  EXPECT_THAT(
      text(slow),
      HasSubstr("350 GB/s after 8.0 us within a node of 4 ranks, 1.25 GB/s after 50.0 us between nodes\n"));
}

TEST(Plan, MoreMicroBatchesShrinkTheBubble) {
  const Config few = config("gpt-tiny", {"grid.pipeline=2", "train.batch=16"});
  const auto bubble = [](const Config& c) { return make_run_plan(c).training.expected.bubble(0); };
  Config many = few;
  many.train.batch = 128;
  EXPECT_LT(bubble(resolve(many)), bubble(resolve(few)) - 0.05);
}

TEST(Plan, TellsTheShareOfTensorSums) {
  const auto share = [](const Config& c) {
    const RunPlan plan = make_run_plan(c);
    return static_cast<double>(plan.training.expected.sums[0]) /
           static_cast<double>(plan.training.expected.step);
  };
  const Config whole = resolve(config("gpt-tiny", {"grid.tensor=1"})),
               shared = resolve(config("gpt-tiny", {"grid.tensor=2"}));
  EXPECT_EQ(share(whole), 0);
  EXPECT_GT(share(shared), 0);
  EXPECT_THAT(plan_text(whole, 1, true),
              ContainsRegex("bubble +tensor +tapes .*\n0 +[0-9]+-[0-9]+ +0.0% +0.0% +1 "));
  EXPECT_THAT(plan_text(shared, 2, true), HasSubstr(fmt::format(" {:.1f}%", 100 * share(shared))));
}

/// Every grid that a refusal offers is taken.
void expect_offers(const Config& c, int ranks, int least) {
  std::string text;
  try {
    plan_text(c, ranks, false);
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::bad_configuration);
    text = error.what();
  }
  int offered = 0;
  for (std::size_t at = text.find("that fit: "); (at = text.find("supernet ", at)) != std::string::npos;
       ++offered, ++at) {
    Config other = c;
    const int found =
        std::sscanf(&text[at], "supernet %d x pipeline %d x data %d x tensor %d", &other.grid.supernet,
                    &other.grid.pipeline, &other.grid.data, &other.grid.tensor);
    ASSERT_EQ(found, 4) << text;
    other.reproducible = {c.reproducible.tensor_follows ? 0 : c.reproducible.tensor,
                          c.reproducible.data_follows ? 0 : c.reproducible.data};
    EXPECT_NO_THROW(require_fit(make_run_plan(on_paper(resolve(other), ranks)), c.memory.device_limit))
        << &text[at];
  }
  EXPECT_GE(offered, least) << text;
}

TEST(Plan, OffersOnlyGridsThatARunWouldAccept) {
  expect_offers(config("gpt-tiny", {"grid.pipeline=3"}), 4, 2);    // 2 x 2 shards
  expect_offers(config("gpt2-1.5b", {"grid.pipeline=3"}), 8, 1);   // 25 heads
  expect_offers(config("gpt-tiny", {"grid.pipeline=16"}), 16, 1);  // 10 blocks
  expect_offers(config("gpt-tiny", {"grid.pipeline=3", "reproducible.tensor=auto", "reproducible.data=auto"}),
                4, 3);
  expect_offers(config("gpt-tiny", {"grid.pipeline=3", "memory.device_limit=25MiB"}), 2,
                1);  // two stages, or half the products
}

TEST(Plan, OffersGridsAlsoWhereADegreeIsRefusedByItself) {
  const auto refusal = [](const std::vector<std::string>& overrides, int ranks) -> std::string {
    try {
      WrittenKeys written;
      read_for_ranks(MINDPIPE_SOURCE_DIR "/configs/gpt-tiny.yaml", overrides, ranks, written);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const std::string heads = refusal({"reproducible.tensor=auto", "grid.tensor=3"}, 3);
  EXPECT_THAT(heads, HasSubstr("grid.tensor is 3 and model.heads 4"));
  EXPECT_THAT(heads, HasSubstr("; grids of 3 ranks that fit: supernet 1 x pipeline 3 x data 1 x tensor 1"));
  EXPECT_THAT(refusal({"grid.tensor=3"}, 3), HasSubstr("grids of 3 ranks that fit: "));
  EXPECT_THAT(refusal({"grid.tensor=3", "model.heads=5"}, 3), Not(HasSubstr("that fit")))
      << "not the grid's fault";
}

TEST(Plan, OffersDivisorsInPlaceOfADegreeThatIsNone) {
  try {
    WrittenKeys written;
    read_for_ranks(MINDPIPE_SOURCE_DIR "/configs/gpt-tiny.yaml",
                   {"reproducible.data=6", "train.batch=48", "grid.data=4"}, 4, written);
    ADD_FAILURE() << "4 ranks share 6 shards";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("grid.data is 4 and reproducible.data 6 (ranks share the logical shards "
                          "equally; the nearest that divides them is 3 or 6)"));
    EXPECT_THAT(error.what(), ContainsRegex("grids of 4 ranks that fit: .*data 2"));
  }
  expect_offers(config("gpt-tiny", {"grid.pipeline=5", "reproducible.data=6", "train.batch=48"}), 6, 3);
}

TEST(Plan, SaysWhatRanksWithoutAWholeSubtreeCost) {
  const auto text = [](int data) {
    return plan_text(config("gpt-tiny", {"reproducible.data=6", "reproducible.tensor=1", "train.batch=48",
                                         fmt::format("grid.data={}", data)}),
                     data, false);
  };
  EXPECT_THAT(text(2),
              ContainsRegex("sums over data: a rank's 3 of 6 shards are up to 2 subtrees, each sent by "
                            "itself: .* MiB a step of a rank, .* MiB if they were one; 2 partial sums"));
  EXPECT_THAT(text(3), Not(HasSubstr("subtrees"))) << "a pair is one";
  EXPECT_THAT(text(6), Not(HasSubstr("subtrees")));
}

TEST(Plan, SaysWhichNumbersOfRanksHaveAGridWhereNoneOfThisNumberFits) {
  const auto refusal = [](const Config& c, int ranks) -> std::string {
    try {
      plan_text(c, ranks, false);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const std::string text = refusal(config("gpt-tiny", {"grid.pipeline=auto"}), 11);
  EXPECT_THAT(
      text, ContainsRegex(
                "; no grid of 11 ranks fits: start [0-9]+ \\(supernet 1 x .*\\) or [0-9]+ \\(supernet 1 x "));
  for (std::size_t at = text.find(": start "); at != std::string::npos; at = text.find(") or ", at + 1)) {
    const std::string offered = text.substr(text.find_first_of("0123456789", at));
    Coord shape;
    int number = 0;
    ASSERT_EQ(std::sscanf(offered.c_str(), "%d (supernet %d x pipeline %d x data %d x tensor %d", &number,
                          &shape.supernet, &shape.pipeline, &shape.data, &shape.tensor),
              5)
        << text;
    EXPECT_EQ(num_ranks(shape), number);
    EXPECT_EQ(refusal(config("gpt-tiny", {fmt::format("grid.pipeline={}", shape.pipeline),
                                          fmt::format("grid.data={}", shape.data),
                                          fmt::format("grid.tensor={}", shape.tensor)}),
                      number),
              "");
  }
}

TEST(Plan, RefusesRanksThatTheGridCannotUse) {
  EXPECT_THROW(plan_text(config("gpt-tiny", {"grid.pipeline=3"}), 4, true), Error);
}

/// A laptop answers at once, for any size: planning must not grow with the square of anything.
TEST(Plan, IsReadyInAboutASecondAlsoForLargeModelsAndManyMicroBatches) {
  const auto seconds = [](const Config& c, int ranks) {  // of the processor, which others use too
    double best = 1e9;
    for (int attempt = 0; attempt < 3 && best > 0.9; ++attempt) {
      const std::clock_t start = std::clock();
      plan_text(c, ranks, true);
      best = std::min(best, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
    }
    return best;
  };
  EXPECT_LT(seconds(config("gpt2-124m"), 8), 0.9);
  EXPECT_LT(seconds(config("llama-8b"), 64), 1.2);
  EXPECT_LT(seconds(config("gpt-tiny", {"model.width=1048576", "model.layers=100"}), 1), 0.9);
  EXPECT_LT(seconds(config("gpt-tiny", {"grid.pipeline=2", "train.batch=1024", "train.micro_batch=1",
                                        "schedule.kind=zb-h1"}),
                    2),
            0.9);
}

}  // namespace
}  // namespace mindpipe
