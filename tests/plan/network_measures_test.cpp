#include "plan/network_measures.h"

#include <gtest/gtest.h>

#include "plan/cost_model.h"
#include "plan/operation_counts.h"
#include "plan/run_plan.h"
#include "spaces.h"

namespace mindpipe {
namespace {

const char* const space_of_pairs =
    "{name: pairs, encoder: {blocks: 2, candidates: [conv-3, attention-4, identity]}, "
    "decoder: {blocks: [[separable-5, glu, mlp-2], [cross-2, cross-4, mlp-1]]}}";

Config measured(Precision precision) {
  Config c;
  c.run.dir = "unused";
  c.data.train = {{"synthetic:dates", 1}};
  c.model.kind = ModelKind::supernet;
  c.schedule.kind = ScheduleKind::causal;
  c.model.supernet.space = space_from(space_of_pairs);
  c.model.supernet.width = 32;
  c.model.supernet.context = 32;
  c.data.source_sequence = 28;
  c.data.target_sequence = 12;
  c.train.batch = 8;
  c.train.micro_batch = 4;
  c.train.precision = precision;
  c.device.description = "h200";
  return resolve(c);
}

/// One network of a supernet by itself.
Config alone(const Config& supernet, const std::vector<std::uint8_t>& choice) {
  Config c = supernet;
  static_cast<SpaceSettings&>(c.model.subnet) = supernet.model.supernet;
  c.model.kind = ModelKind::subnet;
  c.model.subnet.choice.assign(choice.begin(), choice.end());
  c.schedule = {};
  return resolve(c);
}

const std::vector<std::vector<std::uint8_t>> some_choices{{0, 1, 0, 0}, {2, 0, 1, 2}, {1, 2, 2, 1}};

TEST(NetworkMeasures, AreThoseOfTheNetworkByItself) {
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    const Config supernet = measured(precision);
    const NetworkMeasures measures(supernet);
    for (const auto& choice : some_choices) {
      const Config one = alone(supernet, choice);
      const auto parameters = static_cast<double>(parameters_of(one));
      EXPECT_EQ(measures.of(Objective::parameters, choice), parameters);
      EXPECT_EQ(measures.of(Objective::bytes, choice), parameters * (precision == Precision::bf16 ? 2 : 4));
      EXPECT_NEAR(measures.of(Objective::operations, choice) / operations_of(one), 1, 1e-12);
    }
  }
}

TEST(NetworkMeasures, TakeTheLatencyOfOneSample) {
  Config supernet = measured(Precision::bf16);
  const NetworkMeasures measures(supernet);
  for (const auto& choice : some_choices) {
    Config one = alone(supernet, choice);
    one.train.batch = one.train.micro_batch = 1;
    CostModel costs(one, make_layout(one, {}));
    double seconds = 0;
    for (const auto& block : costs.outline().blocks) seconds += 1e-9 * static_cast<double>(block[0].forward);
    EXPECT_NEAR(measures.of(Objective::latency, choice) / seconds, 1, 1e-9);
  }
}

TEST(NetworkMeasures, DoNotDependOnTheGrid) {
  Config supernet = measured(Precision::f32);
  supernet.reproducible = {2, 2};
  const NetworkMeasures one(supernet);
  supernet.grid = {1, 2, 2, 2};
  const NetworkMeasures eight(supernet);
  for (const auto& choice : some_choices)
    for (const Objective what :
         {Objective::parameters, Objective::bytes, Objective::operations, Objective::latency})
      EXPECT_EQ(one.of(what, choice), eight.of(what, choice)) << name_of(what);
}

}  // namespace
}  // namespace mindpipe
