#pragma once
#include <memory>
#include <optional>

#include "app/arguments.h"
#include "app/run_directory.h"
#include "comm/affinity.h"
#include "comm/mpi.h"
#include "comm/watchdog.h"
#include "runtime/worker.h"

namespace mindpipe {

/// read_config for a job of `ranks` ranks (0: as many as the launcher says). A degree that is refused by
/// itself, because heads do not divide for instance, is refused with the grids that fit.
Config read_for_ranks(const std::string& file, const std::vector<std::string>& overrides, int ranks);

/// A configuration whose degrees are those of a job of `ranks` ranks; refuses one that does not fit, with the
/// nearest that do.
Config with_grid(const Config& config, int ranks);
/// For what needs no particular grid: the configuration's own degrees where they fit this job, else the
/// nearest that do. The arithmetic stays: logical shards are those of the configuration.
Config with_any_grid(const Config& config, int ranks);

/// What a step may take before the watchdog ends the job: what the user has said; or ten times the median of
/// the steps that are done, or, before the first, thirty times its price on paper, which may be far off; five
/// minutes at least.
double step_limit(double said, double median_seconds, double seconds_on_paper);

/// What every verb that computes begins with: messages between ranks, the grid, a worker. Collective over the
/// job.
class Run {
 public:
  /// `on_ranks` gives the configuration of a job of so many ranks, or refuses. In the directory `roll`, if
  /// any, the watchdogs of all ranks agree on whom to name.
  Run(const Arguments& arguments, const Config& config,
      Config (*on_ranks)(const Config& config, int ranks) = with_grid, const std::string& roll = "");
  /// Waits for all ranks to end; one that does not is named, too.
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  const Config& config() const { return config_; }
  Worker& worker() { return *worker_; }
  Watchdog& watchdog() { return *watchdog_; }
  bool is_rank_0() const { return session_.rank() == 0; }
  World world() const { return {session_.world(), session_.rank(), session_.size()}; }
  /// Builds this rank's part; says what was built.
  void make_worker(Purpose purpose);
  /// Of this run's steps, given the median of those that are done.
  double step_limit(double median_seconds = 0) const;
  /// finite_loss on train.evaluate_batches batches, each of which may take `limit` seconds. Collective.
  double evaluate(Corpus& corpus, double limit, const std::string& phase, const std::string& what);
  double seconds() const { return seconds_since(start_ns_); }

 private:
  /// What was given, once all ranks are known to have been given the same.
  const Config& agreed(const Config& given);
  /// Where all ranks run. Collective.
  void find_places(int threads);
  std::vector<Coord> neighbours() const;
  std::unique_ptr<Watchdog> armed_watchdog(const Config& config, const std::string& roll) const;

  std::int64_t start_ns_ = now_ns();
  int argc_;
  char** argv_;
  std::string roll_;
  std::unique_ptr<Watchdog> watchdog_;  // there before MPI and after it: a rank that never comes to its
                                        // beginning or end is a rank that hangs, too
  MpiSession session_;
  Config config_;
  std::unique_ptr<Worker> worker_;
  std::vector<RankPlace> places_;
};

/// The product of the degrees; auto counts as 1.
int ranks_of_grid(const Config& config);

/// The same for planning on one process: where threads are not given, as many as each rank would have if all
/// of them were on this machine.
Config on_paper(const Config& config, int ranks);

/// What a run would need, on one process, without allocating: parameters per block, memory by class,
/// operations per token.
std::string dry_run_text(const Config& config, const RunPlan& plan);
/// Prints it, and fails if the run does not fit into memory.device_limit.
void dry_run(const Config& config, int ranks);

}  // namespace mindpipe
