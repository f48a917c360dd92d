#pragma once
#include <gtest/gtest.h>

#include <vector>

#include "config/config.h"
#include "corpus/corpus.h"
#include "plan/run_plan.h"
#include "runtime/ranks.h"
#include "runtime/worker.h"

namespace mindpipe {

/// What a short training came to.
struct ThreeSteps {
  std::vector<double> losses, norms;
  Sha256::Digest state{};
  bool operator==(const ThreeSteps&) const = default;
};

/// Three steps by a plan, with the memory of device and host that it says.
inline ThreeSteps train_three_steps(const Config& config, const RunPlan& plan) {
  Worker worker(config, all_ranks(), plan);
  worker.waiting().set_crowded(true);
  const Coord& here = worker.layout().coord;
  EXPECT_EQ(static_cast<std::int64_t>(worker.memory().allocated()), total_of(plan.memory_of(here)));
  EXPECT_EQ(static_cast<std::int64_t>(worker.host().allocated()), plan.host_memory[here.pipeline][here.data]);
  Corpus corpus(config.data, Subset::train, fields_of(config), config.seed);
  ThreeSteps trained;
  for (int step = 0; step < 3; ++step) {
    const auto scalars =
        worker.step(corpus, step, static_cast<std::int64_t>(step) * config.train.batch, 1e-3);
    trained.losses.push_back(scalars->loss);
    trained.norms.push_back(scalars->gradient_norm);
  }
  trained.state = worker.state().digest();
  return trained;
}

}  // namespace mindpipe
