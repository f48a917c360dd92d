#pragma once
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "backend.h"
#include "comm/channel.h"

// What a message that is awaited in the background takes from the rank that computes: rank 0, on one processor, multiplies matrices while a
// receive from rank 1 stands open the whole time, moved by the backend's progress hook; and the same with no receive open.
namespace mindpipe {

inline double seconds_of(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

inline double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

/// Keeps this process on the n-th of the processors that it may use.
inline void stay_on_processor(int n) {
  cpu_set_t allowed, one;
  CPU_ZERO(&one);
  MP_CHECK(sched_getaffinity(0, sizeof allowed, &allowed) == 0, "sched_getaffinity failed");
  for (int cpu = 0, seen = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &allowed) && seen++ == n % CPU_COUNT(&allowed)) CPU_SET(cpu, &one);
  MP_CHECK(sched_setaffinity(0, sizeof one, &one) == 0, "sched_setaffinity failed");
}

struct Spent {
  std::vector<double> processor, wall;  ///< seconds of each round; the processor's are those of all threads of the process
};

class Rounds {
 public:
  explicit Rounds(std::int64_t n)
      : n_(n),
        memory_(Memory::Kind::host),
        backend_(make_cpu_backend(memory_, 1, "auto")),
        arena_(memory_, MemoryClass::workspace, 64 << 20) {
    x_ = arena_.take({n, n}, DType::f32), w_ = arena_.take({n, n}, DType::f32), y_ = arena_.take({n, n}, DType::f32);
    message_ = arena_.take({1 << 16}, DType::u8), go_ = arena_.take({8}, DType::u8);
    backend_->fill(x_, 0.5), backend_->fill(w_, 0.25);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    waiting_.set_crowded(true);
    stay_on_processor(rank_);
    channels_ = std::make_unique<Channels>(MPI_COMM_WORLD, waiting_);
    backend_->on_progress([this] {
      if (pace_.due() && channels_->under_way() > 0) channels_->progress();
    });
  }

  /// So many that a round is long beside the clock's tick and short beside the machine's moods.
  static int products(std::int64_t n) { return static_cast<int>(std::max<std::int64_t>(1, 1'000'000'000 / (n * n * n))); }

  void run(int rounds, Spent& waiting, Spent& alone) {
    for (int round = -2; round < rounds; ++round) {  // two to warm up
      if (rank_ == 1) {
        channels_->wait(channels_->receive(0, 1, go_));
        channels_->wait(channels_->send(0, 0, message_));
        continue;
      }
      Spent unused;
      for (int turn = 0; turn < 2; ++turn) {
        const bool waits = (turn == 0) == (round % 2 == 0);
        Channels::Transfer open = 0;
        if (waits) open = channels_->receive(1, 0, message_);
        compute(products(n_), round < 0 ? unused : waits ? waiting : alone);
        if (!waits) continue;
        MP_CHECK(!channels_->done(open), "a receive ended that nobody has answered");
        channels_->wait(channels_->send(1, 1, go_));
        channels_->wait(open);
      }
    }
  }

 private:
  void compute(int products, Spent& spent) {
    const double wall = seconds_of(CLOCK_MONOTONIC), processor = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 0; i < products; ++i) backend_->linear(x_, w_, {}, Activation::none, {}, y_);
    spent.wall.push_back(seconds_of(CLOCK_MONOTONIC) - wall);
    spent.processor.push_back(seconds_of(CLOCK_PROCESS_CPUTIME_ID) - processor);
  }

  std::int64_t n_;
  int rank_ = 0;
  Memory memory_;
  std::unique_ptr<Backend> backend_;
  Arena arena_;
  Tensor x_, w_, y_, message_, go_;
  Pace pace_;
  Waiting waiting_;
  std::unique_ptr<Channels> channels_;
};

/// How much of its rate a rank keeps while a receive is open, in products of n x n x n.
struct ShareLeft {
  std::int64_t n;
  double microseconds;           ///< of one product
  double of_processor, of_wall;  ///< by processor time of all threads, and by the wall clock, where other work on the machine counts too
  double load;                   ///< of the machine
};

/// Collective over two ranks; medians of interleaved rounds. Rank 1 learns nothing.
inline ShareLeft share_left(std::int64_t n, int rounds) {
  Rounds both(n);
  Spent waiting, alone;
  both.run(rounds, waiting, alone);
  if (waiting.wall.empty()) return {n, 0, 1, 1, 0};  // rank 1
  double load = 0;
  getloadavg(&load, 1);
  return {n, median(alone.processor) * 1e6 / Rounds::products(n), median(alone.processor) / median(waiting.processor),
          median(alone.wall) / median(waiting.wall), load};
}

inline std::string to_string(const ShareLeft& share) {
  return fmt::format(
      "f32 products {0} x {0} x {0}, {1:.0f} us each: {2:.3f} of the rate of one processor while a receive is open (wall clock {3:.3f}, "
      "load {4:.1f})",
      share.n, share.microseconds, share.of_processor, share.of_wall, share.load);
}

}  // namespace mindpipe
