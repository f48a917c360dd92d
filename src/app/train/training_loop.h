#pragma once
#include <optional>
#include <string>

#include "app/run/run.h"
#include "app/run/run_directory.h"
#include "app/train/evaluation.h"
#include "app/train/faults.h"
#include "app/train/guard.h"
#include "app/train/report_end.h"
#include "app/train/run_comparison.h"
#include "app/train/saves.h"
#include "app/train/step_log.h"
#include "runtime/balancer.h"
#include "runtime/replicas.h"

namespace mindpipe {

/// A training, from the first step or subnet to the last or to the one after which it is asked to stop. It
/// goes from place to place where it may be evaluated, saved or stopped: from step to step, and over a
/// supernet's subnets from drain to drain, which lie between windows.
///
/// Ranks agree without a wait: what each wishes is asked as a step begins, and heard behind its end.
class TrainingLoop : public SubnetCalls {
 public:
  /// `directory`: of the rank that writes, else none. `validation`: none where nothing is evaluated.
  /// `begun`: how far the run had come when it was taken up. `energy`: hears what is done; may be none.
  /// Collective.
  TrainingLoop(Run& run, RunDirectory* directory, Corpus& corpus, HeldOut* validation, Saves& saves,
               const RunProgress& begun, RunEnergy* energy = nullptr);

  /// Lets rank 0 stop the run in time for this many seconds since its start.
  void end_within(double seconds) { walltime_ = seconds; }
  /// Holds what is trained against another run; on rank 0.
  void compare_with(RunComparison* comparison) { comparison_ = comparison; }
  /// Trains, and tells of all that is trained. Collective.
  void run();
  /// Prints where the time went, what `replay` says of it (`notes`), and what the last evaluation found of
  /// each of several sources. Collective.
  void report(const std::vector<std::string>& notes);

  /// Steps or subnets of this start.
  std::int64_t trained() const { return report_.trained(); }
  /// Steps, or subnets, that are done.
  std::int64_t done() const { return done_; }
  /// "stopped after step 7 as asked"; empty: all are done.
  const std::string& stopped() const { return stopped_; }

 private:
  bool goes_on() const { return done_ < run_.last_step() && stopped_.empty(); }
  std::string newest() const;
  void begin();
  void tell_costs() const;
  std::int64_t next_drain() const;
  void take_step();
  std::string tell_move();
  void add(const StepScalars& scalars);
  std::int64_t first_sample(std::int64_t step) {
    return saves_.progress().first_sample(step, config_.train.batch);
  }
  bool goes_back();
  void go_back();
  void train_subnets();
  void load(const Subnet& subnet, StepInput& input) override;
  std::int64_t count(std::int64_t subnet) override;
  void admits(std::int64_t first, std::int64_t end) override;
  bool wishes_to_drain() override;
  void hear(const SubnetScalars& scalars) override;
  void compare_replicas();
  bool is_evaluated() const;
  void evaluate();
  bool wishes_to_stop() const;
  void ask_wishes();
  void hear_wishes();
  void balance(double seconds);
  void heed();
  void save();
  void save_newest();
  void add_remaining();
  void write_last();

  Run& run_;
  const Config& config_;
  Worker& worker_;
  RunDirectory* directory_;
  Corpus& corpus_;
  HeldOut* validation_;
  Saves& saves_;
  EndReport report_;
  RunEnergy* energy_;
  RunComparison* comparison_ = nullptr;  ///< may be none
  StepLog log_;
  Guard guard_;
  std::optional<Replicas> replicas_;  ///< none: nothing is held twice, or computed
  std::optional<Balancer> balancer_;  ///< none: stages are not balanced
  std::int64_t agreed_;               ///< steps after which copies agreed last
  Faults faults_;
  const bool subnets_;        ///< are trained, not steps
  std::int64_t done_;         ///< before what is under way
  double walltime_;           ///< seconds of the run in which it has to end; 0: any
  double limit_ = 0;          ///< seconds that a step or batch may take
  Agreement::Numbers heard_;  ///< wishes of all ranks, as last heard
  bool save_due_ = false;
  HeldOutEvaluation last_found_;  ///< by the last evaluation of this start
  std::string stopped_;
};

}  // namespace mindpipe
