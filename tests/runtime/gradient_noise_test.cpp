#include <gtest/gtest.h>

#include "runtime/parity.h"
#include "runtime/small_models.h"

// Signal and noise of a step's gradient, against steps on the shards alone.
namespace mindpipe {
namespace {

Config in_shards(int shards) {
  Config config = llama_style();
  config.train.batch = 8;
  config.reproducible.data = shards;
  config.train.noise_every = 1;
  return resolve(config);
}

/// The sum of the gradients of all targets that count, of one shard of a step's samples: its length.
double length_of_shard(const StepInput& whole, int shard, int shards) {
  Config config = in_shards(1);
  config.train.batch /= shards;
  config = resolve(config);
  Worker worker(config, {});
  StepInput part = whole;
  const std::int64_t rows = worker.layout().micro_batches();
  for (const FieldTensors::Entry& entry : whole.fields.entries()) {
    Shape shape = entry.tensor.shape;
    shape.extent[0] = rows;
    part.fields.set(entry.name, entry.tensor.range(shard * shape.count(), shape.count()).reshaped(shape));
  }
  const Tensor targets = part.fields.at(field::targets);
  part.valid = std::count_if(targets.as<std::int32_t>(), targets.as<std::int32_t>() + targets.count(),
                             [](std::int32_t target) { return target >= 0; });
  return worker.steps().run(part)->gradient_norm * static_cast<double>(part.valid);
}

TEST(GradientNoiseOfSteps, FollowsFromTheGradientsOfTheShardsAlone) {
  for (const int shards : {2, 4}) {
    const Config config = in_shards(shards);
    Worker worker(config, {});
    BatchFeed feed(config, worker.layout());
    const StepInput& input = feed.at(0);
    double squares = 0;
    for (int shard = 0; shard < shards; ++shard) {
      const double length = length_of_shard(input, shard, shards) * shards / static_cast<double>(input.valid);
      squares += length * length / shards;
    }
    const StepScalars step = *worker.steps().run(input);
    ASSERT_TRUE(step.noise);
    const double square = step.gradient_norm * step.gradient_norm, others = shards - 1;
    EXPECT_NEAR(step.noise->signal, (shards * square - squares) / others, 1e-5 * squares);
    EXPECT_NEAR(step.noise->noise, 8 * (squares - square) / others, 8e-5 * squares);
    EXPECT_GT(step.noise->noise, 0);
  }
}

TEST(GradientNoiseOfSteps, IsMeasuredEverySoManyStepsAndChangesNothingElse) {
  Config config = in_shards(2);
  config.train.noise_every = 3;
  Outcome with, without;
  const auto run = [](const Config& c, Outcome& outcome) {
    Worker worker(c, {});
    train_some(worker, 7, outcome);
    outcome.state = worker.state().digest();
  };
  run(config, with);
  config.train.noise_every = 0;
  run(config, without);
  for (int step = 0; step < 7; ++step)
    EXPECT_EQ(with.noise[2 * step] != 0, step == 2 || step == 5) << "step " << step;
  with.noise.clear();
  EXPECT_EQ(difference(with, without), "");
}

}  // namespace
}  // namespace mindpipe
