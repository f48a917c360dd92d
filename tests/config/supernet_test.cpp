#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "config/config.h"
#include "core/check.h"

namespace mindpipe {
namespace {

using testing::HasSubstr;

constexpr const char* a_supernet =
    "run: {dir: d}\n"
    "data: {train: synthetic:dates, source_sequence: 28, target_sequence: 12}\n"
    "model:\n"
    "  kind: supernet\n"
    "  width: 32\n"
    "  context: 32\n"
    "  space: {name: s, encoder: {blocks: 2, candidates: [glu, conv-3, identity]},"
    " decoder: {blocks: 2, candidates: [attention-4, cross-4, mlp-2]}}\n";

/// The configuration of a small supernet with these settings, or the sentence that refuses it.
std::string answer_to(const std::vector<std::string>& settings, Config* read = nullptr) {
  const auto file =
      std::filesystem::temp_directory_path() / ("mindpipe_supernet_" + std::to_string(getpid()) + ".yaml");
  std::ofstream(file, std::ios::binary) << a_supernet;
  std::string sentence = "accepted";
  try {
    const Config config = read_config(file, settings);
    if (read != nullptr) *read = config;
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::bad_configuration) << error.what();
    sentence = error.what();
  }
  std::filesystem::remove(file);
  return sentence;
}
std::string answer_to_one(const std::string& setting) { return answer_to(std::vector{setting}); }

TEST(SupernetSettings, BeginWithTheCausalScheduleAndAWindow) {
  Config config;
  ASSERT_EQ(answer_to({}, &config), "accepted");
  EXPECT_EQ(config.schedule.kind, ScheduleKind::causal);
  EXPECT_EQ(config.supernet.window, 16);
  EXPECT_EQ(config.supernet.sampler, "uniform");
  EXPECT_THAT(to_yaml(config), HasSubstr("supernet:\n  sampler: uniform\n  spacing: auto\n  window: 16\n"));
  EXPECT_EQ(answer_to({"schedule.kind=bulk", "supernet.sampler=spaced", "supernet.spacing=2",
                       "train.evaluate_every=0", "supernet.admission=3"},
                      &config),
            "accepted");
  EXPECT_EQ(config.schedule.kind, ScheduleKind::bulk);
  EXPECT_EQ(config.supernet.spacing, 2);
}

TEST(SupernetSettings, BelongToSupernetsAlone) {
  EXPECT_EQ(
      answer_to_one("schedule.kind=1f1b"),
      "command line: schedule.kind is 1f1b, and model.kind supernet (causal, bulk, free for a supernet, "
      "the others for models that train in steps)");
  const std::string choice = "model.choice=[0, 0, 0, 0]";
  EXPECT_EQ(
      answer_to({"model.kind=subnet", choice, "schedule.kind=causal"}),
      "command line: schedule.kind is causal, and model.kind subnet (causal, bulk, free for a supernet, "
      "the others for models that train in steps)");
  EXPECT_EQ(answer_to({"model.kind=subnet", choice, "supernet.window=8"}),
            "command line: subnet has no supernet.window (a setting of supernet; leave it out)");
}

TEST(SupernetSettings, WhatStepsHaveAndSubnetsDoNotIsRefused) {
  EXPECT_THAT(answer_to({"train.zero=1", "grid.data=2"}),
              HasSubstr("train.zero is 1, but the optimizer state of a supernet is not sharded over data"));
  EXPECT_THAT(answer_to_one("schedule.chunks=2"), HasSubstr("schedule.chunks is 2 and schedule.kind causal"));
}

TEST(SupernetSettings, LanesAndOwnCutsNeedCausalOrderAndRoom) {
  EXPECT_EQ(answer_to_one("grid.supernet=2"), "accepted");
  EXPECT_THAT(
      answer_to({"grid.supernet=2", "schedule.kind=bulk"}),
      HasSubstr("grid.supernet is 2, and schedule.kind bulk (units move between lanes in causal order"));
  EXPECT_THAT(
      answer_to({"grid.supernet=4", "grid.pipeline=2", "supernet.admission=3"}),
      HasSubstr(
          "grid.supernet is 4, but supernet.admission lets 3 subnets be in flight, where each lane needs one "
          "(take an admission of 4, better of 8, or auto)"));
  EXPECT_EQ(answer_to({"supernet.cuts=own", "grid.pipeline=2"}), "accepted");
  EXPECT_THAT(answer_to({"supernet.cuts=own", "grid.pipeline=3"}),
              HasSubstr("supernet.cuts is own, but model.space, s, has 4 blocks for 3 stages"));
  EXPECT_THAT(answer_to({"supernet.cuts=own", "schedule.kind=free"}),
              HasSubstr("supernet.cuts is own, and schedule.kind free"));
}

TEST(SupernetSettings, StagesHaveABlockOfTheSpaceAtLeast) {
  EXPECT_EQ(answer_to_one("grid.pipeline=4"), "accepted");
  EXPECT_EQ(answer_to_one("grid.pipeline=5"),
            "command line: grid.pipeline is 5, but model.space, s, has 4 blocks (a stage has at least one)");
}

TEST(SupernetSettings, EveryCandidateFitsTheWidthAndTheShards) {
  EXPECT_THAT(
      answer_to({"model.width=30"}),
      HasSubstr("model.space gives block 2 attention-4, whose heads do not divide model.width 30 (the "
                "nearest that fit are attention-3 and attention-5)"));
  EXPECT_THAT(answer_to({"reproducible.tensor=4", "train.batch=32", "model.width=40",
                         "model.space={name: t, decoder: {blocks: 2, candidates: [glu, attention-10]}}",
                         "data.source_sequence=auto", "data.target_sequence=auto"}),
              HasSubstr("model.space gives block 0 attention-10, whose heads 4 logical tensor shards"));
}

TEST(SupernetSettings, ASamplerIsAWordOrAFileAndHasASpacingThatCandidatesAllow) {
  EXPECT_THAT(answer_to_one("supernet.sampler=unifrom"),
              HasSubstr("supernet.sampler is unifrom, which is neither uniform, permutation, spaced nor a "
                        "file (its path is taken from the directory of the command)"));
  EXPECT_THAT(answer_to_one("supernet.spacing=2"),
              HasSubstr("supernet.spacing is 2, but supernet.sampler is uniform (spaced has a spacing)"));
  EXPECT_EQ(answer_to({"supernet.sampler=spaced", "supernet.spacing=3"}),
            "command line: supernet.spacing is 3, but block 0 has 3 candidates (one comes again after 2 "
            "subnets at most; the usual spacing is 2)");
}

TEST(SupernetSettings, AWindowsSumHoldsItsGradients) {
  // A table of three uses, 16 micro-batches: 48 gradients of a subnet, 170 of them 8160.
  const std::vector<std::string> batch{"train.batch=64", "train.micro_batch=4"};
  EXPECT_EQ(answer_to({batch[0], batch[1], "supernet.window=170"}), "accepted");
  EXPECT_EQ(answer_to({batch[0], batch[1], "supernet.window=171"}),
            "command line: supernet.window is 171 subnets, which give 8208 gradients to what all share, and "
            "their sum holds 8191 (a window of 170 or fewer would do)");
  EXPECT_EQ(
      answer_to({"train.batch=4096", "train.micro_batch=1", "supernet.window=1"}),
      "command line: train.micro_batch is 1 and train.batch 4096: what all subnets share is given 12288 "
      "gradients by one subnet, and the sum of a window holds 8191 (a larger micro-batch gives fewer)");
}

TEST(SupernetSettings, EvaluationsAndCheckpointsLieBetweenWindows) {
  EXPECT_EQ(answer_to({"train.evaluate_every=100", "data.validation=[synthetic:dates]"}),
            "command line: train.evaluate_every is 100, amid a window of supernet.window = 16 subnets (the "
            "nearest between two are 96 and 112)");
  EXPECT_EQ(answer_to_one("checkpoint.every=8"),
            "command line: checkpoint.every is 8, amid a window of supernet.window = 16 subnets (the nearest "
            "between two are 16)");
  EXPECT_EQ(answer_to({"checkpoint.every=8", "supernet.window=4"}), "accepted");
}

}  // namespace
}  // namespace mindpipe
