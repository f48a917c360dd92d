#pragma once
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>

#include "part_of_cases.h"
#include "runtime/late_device.h"
#include "runtime/parity_cases.h"
#include "runtime/ranks.h"

namespace mindpipe {

using Run = std::function<Outcome(const Config&, const World&, int steps)>;

/// What one rank gets for each arithmetic among the cases; the ranks share the work.
class References {
 public:
  References(const std::vector<Config>& cases, const Run& run, int steps) {
    const World world = all_ranks();
    for (const Config& c : cases) {
      const Config one = alone(c);
      outcomes_.try_emplace(to_yaml(one));
      configs_.try_emplace(to_yaml(one), one);
    }
    int turn = 0;
    for (auto& [key, words] : outcomes_) {
      words.resize(Outcome::words_of(steps));
      if (turn++ % world.size == world.rank) words = run(configs_.at(key), {}, steps).words();
    }
    turn = 0;
    for (auto& [key, words] : outcomes_)
      MPI_Bcast(words.data(), static_cast<int>(words.size()), MPI_UINT64_T, turn++ % world.size, world.comm);
  }
  Outcome of(const Config& c) const { return Outcome::from(outcomes_.at(to_yaml(alone(c)))); }

 private:
  std::map<std::string, std::vector<std::uint64_t>> outcomes_;
  std::map<std::string, Config> configs_;
};

/// Says every two seconds how far a long list has come.
class Progress {
 public:
  Progress(int ranks, std::size_t all) : ranks_(ranks), all_(all) {}
  void show(std::size_t done, std::size_t failed) {
    const double seconds = seconds_since(start_ns_);
    if (seconds < next_) return;
    next_ = seconds + 2;
    std::printf("%d ranks: %zu of %zu layouts, %zu failed, about %.0f s left\n", ranks_, done, all_, failed,
                seconds / static_cast<double>(done) * static_cast<double>(all_ - done));
    std::fflush(stdout);
  }

 private:
  int ranks_;
  std::size_t all_;
  std::int64_t start_ns_ = now_ns();
  double next_ = 2;
};

/// Whether it holds on every rank.
inline bool on_all_ranks(bool here) {
  int mine = here ? 1 : 0, all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return all == 1;
}

inline void compare(const std::vector<Config>& all, std::size_t left_out, int steps, const Run& run,
                    const Run& run_alone) {
  const World world = all_ranks();
  const std::vector<Config> tried = part_of_cases(all);
  const References references(tried, run_alone, steps);
  const bool chatty = std::getenv("MINDPIPE_SAY_LAYOUTS") != nullptr;
  Progress progress(world.size, tried.size());
  std::size_t done = 0, failed = 0;
  for (const Config& config : tried) {
    if (chatty && world.rank == 0) std::fprintf(stderr, "%s\n", describe(config).c_str());
    const Outcome got = run(config, world.size == 1 ? World{} : world, steps);
    const bool learns = std::isfinite(got.losses.back()) && got.losses.back() != got.losses.front();
    const std::string different = difference(got, references.of(config));
    EXPECT_TRUE(learns) << describe(config);
    EXPECT_EQ(different, "") << describe(config);
    ++done;
    failed += on_all_ranks(learns && different.empty()) ? 0 : 1;
    if (world.rank == 0) progress.show(done, failed);
  }
  if (world.rank == 0)
    std::printf("%d ranks: %zu layouts passed, %zu failed, %zu skipped\n", world.size, done - failed, failed,
                left_out + all.size() - tried.size());
}

inline Outcome outcome_of_steps(const Config& config, const World& world, int steps) {
  return outcome_of(config, world, steps);
}

/// On a device that runs behind the host and whose memory neither the host nor MPI may read: as a GPU that
/// ranks share.
inline Outcome outcome_of_the_late(const Config& config, const World& world, int steps) {
  const LateDevice late;
  Worker worker(config, world, make_run_plan(config), late.make);
  share_processors(worker);
  Outcome outcome;
  train_some(worker, steps, outcome);
  outcome.state = worker.state().digest();
  return outcome;
}

using Train = std::function<void(Worker&, int steps, Outcome&)>;

/// On devices that run behind the host and carry their messages themselves: as GPUs of their own.
inline Outcome outcome_of_queued(const Config& config, const World& world, int steps, const Carry& carry,
                                 const Train& train, const Cover& cover, RunPlan plan) {
  LateDevice late(carry, cover);
  Worker worker(config, world, std::move(plan), late.make, late.connect);
  share_processors(worker);
  late.go_on_in_waits(worker);
  Outcome outcome;
  train(worker, steps, outcome);
  outcome.state = worker.state().digest();
  return outcome;
}

inline Outcome outcome_of_queued(const Config& config, const World& world, int steps, const Carry& carry,
                                 const Train& train, const Cover& cover = {}) {
  return outcome_of_queued(config, world, steps, carry, train, cover, make_run_plan(config));
}

inline Outcome outcome_of_the_queued(const Config& config, const World& world, int steps) {
  return outcome_of_queued(
      config, world, steps, carried_in_order,
      [](Worker& worker, int count, Outcome& outcome) { train_some(worker, count, outcome); });
}

}  // namespace mindpipe
