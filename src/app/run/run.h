#pragma once
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>

#include "app/plan/grid_choice.h"
#include "app/run/injection.h"
#include "app/run/run_arithmetic.h"
#include "app/run/run_inputs.h"
#include "app/verbs/arguments.h"
#include "comm/affinity.h"
#include "comm/mpi.h"
#include "comm/watchdog.h"
#include "config/config.h"
#include "runtime/worker.h"

namespace mindpipe {

/// What a step may take before the watchdog ends the job: what the user has said; or ten times the median of
/// the steps that are done, or, before the first, thirty times its price on paper, which may be far off; five
/// minutes at least.
double step_limit(double said, double median_seconds, double seconds_on_paper);

/// What every verb that computes begins with: messages between ranks, the grid, a worker. Collective over the
/// job.
class Run {
 public:
  /// The configuration of a job of these ranks, or a refusal. Collective.
  using OnRanks = std::function<Config(const Config& config, const World& world)>;
  /// The configuration of a job of `ranks` ranks, or a refusal.
  static OnRanks on_job(Config (*on_ranks)(const Config& config, int ranks)) {
    return [on_ranks](const Config& config, const World& world) { return on_ranks(config, world.size); };
  }
  /// Starts a run; in the directory `roll`, if any, the watchdogs of all ranks agree on whom to name.
  Run(const Arguments& arguments, const Config& config, const OnRanks& on_ranks,
      const std::string& roll = "");
  /// Waits for all ranks to end; one that does not is named, too.
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  const Config& config() const { return config_; }
  /// Whether the search has chosen some of its settings.
  bool was_searched() const { return was_searched_; }
  Worker& worker() { return *worker_; }
  Watchdog& watchdog() { return *watchdog_; }
  /// Faults to try, of all ranks.
  const std::vector<Injection>& injections() const { return injections_; }
  /// Threads of this rank: as many as said, or as all ranks of its machine can have at once.
  int threads() const;
  /// All that the bits of the run depend on, once there is a worker.
  const RunArithmetic& arithmetic() const { return *arithmetic_; }
  /// Where all ranks run, once there is a worker.
  const std::vector<RankPlace>& places() const { return places_; }
  bool is_rank_0() const { return session_.rank() == 0; }
  World world() const { return {session_.world(), session_.rank(), session_.size()}; }
  /// The run goes on from a checkpoint of this arithmetic: its weights began where those did.
  void go_on_from(const std::string& arithmetic) { beginning_ = beginning_among(arithmetic); }
  /// Builds this rank's part; says what was built. `batches`: that many networks are to be scored on.
  void make_worker(Purpose purpose, std::int64_t batches = 1, const MakeBackend& make = make_backend);
  /// What one of this run's steps may take, given the median of those that are done.
  double step_limit(double median_seconds = 0) const;
  double seconds() const { return seconds_since(start_ns_); }

 private:
  /// What was given, once all ranks are known to have been given the same.
  const Config& agreed(const Config& given);
  /// Finds out where all ranks run. Collective.
  void find_places(int threads);

  std::int64_t start_ns_ = now_ns();
  int argc_;
  char** argv_;
  std::string roll_;
  std::vector<Injection> injections_;
  std::set<std::string> open_;  ///< settings that were left to a search
  bool was_searched_;
  std::unique_ptr<Watchdog> watchdog_;  // there before MPI and after it: a rank that never comes to its
                                        // beginning or end is a rank that hangs, too
  MpiSession session_;
  Config config_;
  std::unique_ptr<Worker> worker_;
  std::string beginning_;  ///< what the arithmetic says of it where the run goes on; else empty
  std::optional<RunArithmetic> arithmetic_;
  std::vector<RankPlace> places_;
};

}  // namespace mindpipe
