#pragma once
#include <algorithm>
#include <memory>
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
#include "app/train/wishes.h"
#include "runtime/replicas.h"

namespace mindpipe {

/// Steps, or subnets, that are done where this start ends: all of them, or run.stop_after.
inline std::int64_t last_step(const Config& config) {
  const int stop = config.run.stop_after, all = config.train.steps;
  return stop > 0 ? std::min(stop, all) : all;
}

/// A training, from its first step or subnet to the last or to the one after which it is asked to stop. It
/// goes from place to place where it may be evaluated, saved or stopped. What happens between two places is a
/// matter of its kind: StepTraining, SubnetTraining.
class TrainingLoop {
 public:
  /// `report`: tells of the end. `directory`: of the rank that writes, else none. `validation`: none where
  /// nothing is evaluated. `begun`: how far the run had come when it was taken up. `energy`: hears what is
  /// done; may be none. Collective.
  TrainingLoop(std::unique_ptr<EndReport> report, Run& run, RunDirectory* directory, Corpus& corpus,
               HeldOut* validation, Saves& saves, const RunProgress& begun, RunEnergy* energy = nullptr);
  virtual ~TrainingLoop() = default;

  /// Lets rank 0 stop the run in time for this many seconds since its start.
  void end_within(double seconds) { wishes_.end_within(seconds); }
  /// Holds what is trained against another run; on rank 0.
  void compare_with(RunComparison* comparison) { comparison_ = comparison; }
  /// Trains, and tells of all that is trained. Collective.
  void run();
  /// Prints where the time went, what `replay` says of it (`notes`), and what the last evaluation found of
  /// each of several sources. Collective.
  void report(const std::vector<std::string>& notes);
  /// Why nobody can say who was slow, where there is no trace to replay; empty: it is not expected.
  virtual std::string why_untraced() const = 0;

  /// Steps or subnets of this start.
  std::int64_t trained() const { return report_->trained(); }
  /// Steps, or subnets, that are done.
  std::int64_t done() const { return done_; }
  /// "stopped after step 7 as asked"; empty: all are done.
  const std::string& stopped() const { return stopped_; }

 protected:
  /// What is done before the first place.
  virtual void begin() = 0;
  /// Trains from `done_` to the next place.
  virtual void train() = 0;
  /// The step or subnet that was trained last, in words.
  virtual std::string newest() const = 0;
  /// The place where the training is, as an evaluation names it, and what is evaluated there.
  virtual std::string place() const = 0;
  virtual std::string of_what_evaluated() const = 0;
  /// Lets the ranks agree at a place, where they have not done so on their way to it.
  virtual void agree() {}
  /// Tells of what was trained before this place and is known late.
  virtual void add_remaining() {}
  /// Goes back to a checkpoint where there is trouble.
  virtual bool goes_back() { return false; }

  bool goes_on() const { return done_ < last_step(config_) && stopped_.empty(); }
  std::int64_t first_sample(std::int64_t step) {
    return saves_.progress().first_sample(step, config_.train.batch);
  }

  Run& run_;
  const Config& config_;
  Worker& worker_;
  RunDirectory* directory_;
  Corpus& corpus_;
  HeldOut* validation_;
  Saves& saves_;
  std::unique_ptr<EndReport> report_;
  Wishes wishes_;
  RunEnergy* energy_;
  RunComparison* comparison_ = nullptr;  ///< may be none
  StepLog log_;
  Guard guard_;
  std::optional<Replicas> replicas_;  ///< none: nothing is held twice, or computed
  std::int64_t agreed_;               ///< steps after which copies agreed last
  Faults faults_;
  std::int64_t done_;       ///< before what is under way
  int most_rollbacks_ = 0;  ///< how often trouble may let the run go back to a checkpoint
  double limit_ = 0;        ///< seconds that a step or batch may take
  std::string stopped_;

 private:
  void compare_replicas();
  bool is_evaluated() const;
  void evaluate();
  void heed();
  void save();
  void save_newest();
  void write_last();

  bool save_due_ = false;
  HeldOutEvaluation last_found_;  ///< by the last evaluation of this start
};

}  // namespace mindpipe
