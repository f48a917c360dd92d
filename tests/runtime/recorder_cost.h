#pragma once
#include <ctime>

#include "runtime/small_models.h"

// What recording takes, beside what it records.
namespace mindpipe {

/// Seconds that this thread has had of a processor.
inline double processor_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

inline double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

struct RecorderCost {
  int actions = 0;       ///< actions of a step
  double action_ns = 0;  ///< time of an action, the mean of all queues
  /// Recording's part of action_ns: both clock readings, both entries, a share of making room for the step.
  double recording_ns = 0;
  double share() const { return recording_ns / action_ns; }
};

/// The smallest model of the tests, on this rank alone: its actions are as short as those of a training get.
/// Medians of steps that are run and steps that are only recorded, turn about, by processor time.
inline RecorderCost recorder_cost(int steps) {
  Config config = small_config();
  config.train.micro_batch = 1;
  config = resolve(config);
  Worker worker(config, World{MPI_COMM_SELF, 0, 1});
  const Batches batches = random_batches(config, 1, 0);
  Feeder feeder(worker, batches);
  RecorderCost cost{static_cast<int>(worker.training().list.size())};
  constexpr std::size_t held = 8;
  Recorder recorder(worker.training().list.size(), held);
  std::vector<double> run, recorded;
  for (int step = 0; step < steps; ++step) {
    const StepInput& input = feeder.load(0, 1e-4);
    const double start = processor_seconds();
    worker.steps().run(input);
    const double between = processor_seconds();
    for (std::size_t again = 0; again < held; ++again) {  // else it would be too short beside the clock
      recorder.begin_step(step);
      for (int action = 0; action < cost.actions; ++action) {
        recorder.start(action, now_ns());
        recorder.end(action, now_ns());
      }
    }
    run.push_back(between - start);
    recorded.push_back((processor_seconds() - between) / held);
  }
  cost.action_ns = median(run) / cost.actions * 1e9;
  cost.recording_ns = median(recorded) / cost.actions * 1e9;
  return cost;
}

inline std::string to_string(const RecorderCost& cost) {
  return fmt::format("recording takes {:.0f} ns of an action of {:.1f} us ({} actions a step): {:.2f} %",
                     cost.recording_ns, cost.action_ns * 1e-3, cost.actions, 100 * cost.share());
}

}  // namespace mindpipe
