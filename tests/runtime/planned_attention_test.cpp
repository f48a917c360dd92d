#include <gtest/gtest.h>

#include "make_backend.h"
#include "runtime/parity.h"

// A library of the GPU plans an attention before it runs, which takes memory and waits for the device: every
// form that a run will ask has to be known before its first step.
namespace mindpipe {
namespace {

constexpr std::array planned_styles{Style::gpt2, Style::llama, Style::transformer, Style::bert,
                                    Style::post_norm};

/// A run of this style with attention that a GPU's library would plan.
Config planned_run(Style style, double attention_dropout, WhichBlocks recompute, int tensor) {
  Config config = tiny(style, tensor, 2);
  BlockSettings& m = block_model(config);
  m.width = 64;
  m.heads = 8;
  config.model.gpt.key_value_heads = style == Style::llama ? 4 : 0;
  m.attention_dropout = attention_dropout;
  if (style == Style::transformer) config.data.source_sequence = config.data.sequence / 2;
  read_a_corpus(config);
  if (style == Style::bert) text_model(config).context = config.data.sequence = 128;  // a library's tile
  config.train.precision = Precision::bf16;
  config.train.recompute = recompute;
  return config;
}

RunPlan plan_for_gpu(Config config, Purpose purpose) {
  config.device.kind = DeviceKind::cuda;
  return make_run_plan(resolve(config), purpose);
}

/// What the run asks for, step by step, of a device that does not compute.
std::set<PlannedAttention> asked_by(Config config, Purpose purpose) {
  config.device.kind = DeviceKind::emulated;
  config.device.description = "instant";
  config = resolve(config);
  const auto asked = make_gpu_workspace(attention_limit(config));
  Worker worker(config, {}, make_run_plan(config, purpose),
                [&](const Config&, Memory& memory, int, const World&) {
                  auto device = make_pricing_backend(memory, describe_device("instant"));
                  device->tell(*asked);
                  return device;
                });
  Corpus corpus(config.data, Subset::train, fields_of(config), config.seed);
  for (int step = 0; purpose == Purpose::training && step < 2; ++step) worker.step(corpus, step, 0, 1e-3);
  worker.evaluator().evaluate(corpus, 1);
  return asked->largest().planned;
}

/// Questions that are in the first set and not in the second, in words.
std::string only_in(const std::set<PlannedAttention>& first, const std::set<PlannedAttention>& second) {
  std::string text;
  for (const PlannedAttention& question : first)
    if (!second.contains(question)) text += question.text() + "; ";
  return text;
}

void expect_exactly_its_questions(const Config& config, Purpose purpose) {
  const std::set<PlannedAttention> asked = asked_by(config, purpose);
  const RunPlan plan = plan_for_gpu(config, purpose);
  const Workspace& known = plan.footprints[0].passes.backend;
  EXPECT_EQ(only_in(asked, known.planned), "") << "the run would plan in the middle of a step";
  EXPECT_EQ(only_in(known.planned, asked), "") << "the run would plan for nothing";
  for (const PlannedAttention& question : asked)
    if (known.attention_is_estimated) {
      EXPECT_LE(question.formula_bytes(), known.attention);
    }
}

TEST(PlannedAttentionOfRuns, StepsAndEvaluationsAskExactlyWhatThePlanKnowsBefore) {
  for (const Style style : planned_styles)
    for (const double dropout : {0.0, 0.1})
      for (WhichBlocks recompute : {WhichBlocks::none, WhichBlocks::block})
        for (const Purpose purpose : {Purpose::training, Purpose::reading}) {
          SCOPED_TRACE(fmt::format("{}, dropout {}, recompute {}, {}", name_of(style), dropout, recompute,
                                   purpose == Purpose::training ? "training" : "reading"));
          const Config config = planned_run(style, dropout, recompute, style == Style::gpt2 ? 2 : 1);
          EXPECT_FALSE(asked_by(config, purpose).empty());
          expect_exactly_its_questions(config, purpose);
        }
}

TEST(PlannedAttentionOfRuns, RowsThatFillNoTileAreCountedForThePlan) {
  for (const Purpose purpose : {Purpose::training, Purpose::reading}) {
    const Config config = planned_run(Style::vit, 0, WhichBlocks::none, 2);
    const std::set<PlannedAttention> asked = asked_by(config, purpose);
    EXPECT_EQ(asked.size(), purpose == Purpose::training ? 2 : 1);
    for (const PlannedAttention& question : asked) EXPECT_TRUE(question.padded) << question.text();
    expect_exactly_its_questions(config, purpose);
  }
}

TEST(PlannedAttentionOfRuns, WhatIsCutIntoPiecesOrLeftToOurOwnKernelsIsKnownAsWell) {
  for (const Style style : planned_styles) {
    SCOPED_TRACE(name_of(style));
    Config config = planned_run(style, 0, WhichBlocks::none, 1);
    const std::set<PlannedAttention> whole = asked_by(config, Purpose::training);
    EXPECT_NE(only_in(whole, asked_by(config, Purpose::reading)), "") << "reading asks for no backward";
    std::size_t most = 0;
    for (const PlannedAttention& question : whole) most = std::max(most, question.formula_bytes());

    config.device.attention_workspace = static_cast<std::int64_t>(most / 3);
    const std::set<PlannedAttention> pieces = asked_by(config, Purpose::training);
    expect_exactly_its_questions(config, Purpose::training);
    EXPECT_NE(only_in(pieces, whole), "") << "no question is of a piece";

    config.device.attention_beyond = AttentionBeyond::own;
    const std::set<PlannedAttention> fewer = asked_by(config, Purpose::training);
    expect_exactly_its_questions(config, Purpose::training);
    EXPECT_EQ(only_in(fewer, whole), "");
    EXPECT_LT(fewer.size(), whole.size());
  }
}

}  // namespace
}  // namespace mindpipe
