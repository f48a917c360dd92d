#pragma once
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "runtime/recorder_cost.h"

// What a message that is awaited in the background takes from the rank that computes. Two stages: rank 0, on
// one processor, runs the forward of the only micro-batch while its receive of the gradient stands open; rank
// 1, which cannot begin before that has ended, waits. The same step is run with the executor's own hook in
// the backend and with none, turn about.
namespace mindpipe {

/// Processor time of this thread between the first receive and the first send of a step, and how often MPI
/// was asked in between: of rank 0, the forward. One for each program that includes this.
struct ForwardWatch {
  enum class Stage : std::uint8_t { off, before, inside, behind };
  Stage stage = Stage::off;
  double seconds = 0;
  std::int64_t looks = 0;

  void begin() { *this = {Stage::before, 0, 0}; }
  void receives() {
    if (stage != Stage::before) return;
    stage = Stage::inside;
    seconds = -processor_seconds();
  }
  void sends() {
    if (stage != Stage::inside) return;
    stage = Stage::behind;
    seconds += processor_seconds();
  }
  void looks_around() {
    if (stage == Stage::inside) ++looks;
  }
};
inline ForwardWatch forward_watch;

}  // namespace mindpipe

extern "C" {
int MPI_Irecv(void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
              MPI_Request* request) {
  const int code = PMPI_Irecv(data, count, type, from, tag, comm, request);
  mindpipe::forward_watch.receives();
  return code;
}
int MPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request* request) {
  mindpipe::forward_watch.sends();
  return PMPI_Isend(data, count, type, to, tag, comm, request);
}
int MPI_Testsome(int count, MPI_Request* requests, int* done, int* numbers, MPI_Status* statuses) {
  mindpipe::forward_watch.looks_around();
  return PMPI_Testsome(count, requests, done, numbers, statuses);
}
}

namespace mindpipe {

/// Keeps this process on the n-th of the processors that it may use.
inline void stay_on_processor(int n) {
  cpu_set_t allowed, one;
  CPU_ZERO(&one);
  MP_CHECK(sched_getaffinity(0, sizeof allowed, &allowed) == 0, "sched_getaffinity failed");
  for (int cpu = 0, seen = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &allowed) && seen++ == n % CPU_COUNT(&allowed)) CPU_SET(cpu, &one);
  MP_CHECK(sched_setaffinity(0, sizeof one, &one) == 0, "sched_setaffinity failed");
}

/// How much of its rate a rank keeps while a receive is open, by processor time.
struct ShareLeft {
  int width = 0;            ///< width of the model, and of its tokens
  double milliseconds = 0;  ///< milliseconds of the forward
  double operation = 0;     ///< mean microseconds of its operations
  double looks = 0;         ///< how often the hook asked MPI in one forward
  double share = 0;
  double load = 0;  ///< load of the machine
};

inline std::string to_string(const ShareLeft& share) {
  return fmt::format(
      "forward of {:.1f} ms in operations of {:.1f} us, width {}: {:.3f} of the rate while a receive is "
      "open, {:.0f} looks (load {:.1f})",
      share.milliseconds, share.operation, share.width, share.share, share.looks, share.load);
}

/// Two stages of which the first does nearly all, its operations as long as `width` makes them.
class OpenReceive {
 public:
  OpenReceive(const World& world, int width)
      : width_(width), config_(make_config(width)), worker_(config_, world) {
    stay_on_processor(world.rank);
    worker_.waiting().set_crowded(true);
  }

  /// Collective. The median over neighbouring pairs of steps; rank 1 learns nothing.
  ShareLeft share_left(int pairs) {
    const Batches batches = random_batches(config_, 1, 0);
    Feeder feeder(worker_, batches);
    ShareLeft result{width_};
    std::int64_t operations = 0;
    forward_of(feeder, [&] { operations += forward_watch.stage == ForwardWatch::Stage::inside; });
    std::vector<double> ratios, forwards;
    for (int pair = -2; pair < pairs; ++pair) {  // two to warm up
      ForwardWatch seen[2];
      for (int turn = 0; turn < 2; ++turn) {
        const bool with_hook = (turn == 0) == (pair % 2 == 0);
        seen[with_hook] =
            forward_of(feeder, with_hook ? Hook([this] { worker_.executor().look_around(); }) : Hook());
      }
      if (worker_.world().rank != 0) continue;
      MP_CHECK(seen[0].stage == ForwardWatch::Stage::behind, "a step began no receive before its first send");
      if (pair < 0) continue;
      forwards.push_back(seen[0].seconds);
      ratios.push_back(seen[0].seconds / seen[1].seconds);
      result.looks += static_cast<double>(seen[1].looks - seen[0].looks) / pairs;
    }
    if (ratios.empty()) return result;
    result.milliseconds = median(forwards) * 1e3;
    result.share = median(ratios);
    result.operation = median(forwards) * 1e6 / static_cast<double>(operations);
    getloadavg(&result.load, 1);
    return result;
  }

 private:
  static Config make_config(int width) {
    Config config = small_config();
    config.model.gpt.width = width;
    config.model.gpt.context = width;
    config.model.gpt.vocabulary = 64;
    config.model.gpt.layers = std::max(2, (1 << 17) / (width * width));  // some milliseconds
    config.train.batch = config.train.micro_batch = 1;
    config.grid.pipeline = 2;
    config.schedule.cuts = {2 * config.model.gpt.layers + 1};
    return resolve(config);
  }

  using Hook = std::function<void()>;
  ForwardWatch forward_of(Feeder& feeder, Hook hook) {
    worker_.backend().on_progress(std::move(hook));
    const StepInput& input = feeder.load(0, 1e-4);
    forward_watch.begin();
    worker_.steps().run(input);
    return forward_watch;
  }

  int width_;
  Config config_;
  Worker worker_;
};

}  // namespace mindpipe
