#include <gtest/gtest.h>

#include "runtime/asked_as_gpu.h"
#include "runtime/parity.h"

// On a GPU nobody zeroes what a step's first product for a weight writes.
namespace mindpipe {
namespace {

struct Trained {
  std::vector<double> losses;
  Sha256::Digest state;
  bool operator==(const Trained&) const = default;
};

Trained trained(const Config& config, RunPlan plan, const MakeBackend& make = make_backend) {
  Corpus corpus(config.data, Subset::train, fields_of(config), config.seed);
  Worker worker(config, {}, std::move(plan), make);
  Trained result;
  for (int step = 0; step < 3; ++step)
    result.losses.push_back(worker.step(corpus, step, step * config.train.batch, 1e-2).value().loss);
  result.state = worker.state().digest();
  return result;
}

Trained trained_as_gpu(const Config& config, bool adds = false) {
  const RunPlan plan = make_run_plan(config);
  return trained(config, plan_as_gpu(config),
                 [&](const Config& of, Memory& memory, int threads, const World& world) {
                   return std::make_unique<AskedAsGpu>(make_backend(of, memory, threads, world),
                                                       plan.footprints[0].passes.backend, adds);
                 });
}

/// Two data shards of two micro-batches, so that gradients go on from one shard to the next.
Config two_shards(Style style, ScheduleKind schedule) {
  Config config = tiny(style, 1, 2);
  config.schedule.kind = schedule;
  config.train.micro_batch = 1;
  config.train.batch = 4;
  read_a_corpus(config);
  return resolve(config);
}

TEST(FirstProducts, WriteGradientsThatNobodyHasZeroed) {
  for (const Style style : {Style::gpt2, Style::llama, Style::transformer, Style::bert, Style::vit,
                            Style::evolved, Style::wide_resnet})
    for (const ScheduleKind schedule : {ScheduleKind::one_forward_one_backward, ScheduleKind::zero_bubble}) {
      SCOPED_TRACE(fmt::format("{}, {}", name_of(style), name_of(schedule)));
      const Config config = two_shards(style, schedule);
      AskedAsGpu::products = AskedAsGpu::first = 0;
      EXPECT_EQ(trained_as_gpu(config), trained(config, make_run_plan(config)));
      EXPECT_GT(AskedAsGpu::first, 0);
      EXPECT_LT(AskedAsGpu::first, AskedAsGpu::products) << "later micro-batches add";
    }
}

TEST(FirstProducts, ThatAddAllTheSameAreNoticed) {
  const Config config = two_shards(Style::gpt2, ScheduleKind::one_forward_one_backward);
  EXPECT_NE(trained_as_gpu(config, true).state, trained(config, make_run_plan(config)).state);
}

}  // namespace
}  // namespace mindpipe
