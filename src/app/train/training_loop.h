#pragma once
#include <optional>
#include <string>

#include "app/run/run.h"
#include "app/run/run_directory.h"
#include "app/train/report_end.h"
#include "app/train/saves.h"
#include "app/train/step_log.h"

namespace mindpipe {

/// The steps of a training, from the first to the last or to the one after which it is asked to stop.
class TrainingLoop {
 public:
  /// `directory`: of the rank that writes, else none. `validation`: none where nothing is evaluated.
  /// `begun`: how far the run had come when it was taken up. Collective.
  TrainingLoop(Run& run, RunDirectory* directory, Corpus& corpus, Corpus* validation, Saves& saves,
               const RunProgress& begun);

  /// Takes all steps and tells of each. Collective.
  void run();

  int steps_done() const { return step_; }
  /// "stopped after step 7 as asked"; empty: all steps are done.
  const std::string& stopped() const { return stopped_; }
  EndReport& report() { return report_; }

 private:
  bool goes_on() const { return step_ < run_.last_step() && stopped_.empty(); }
  bool evaluates() const;
  void give_time();
  void take_step();
  void evaluate();
  void write();
  void agree();
  void save();
  void write_last();

  Run& run_;
  const Config& config_;
  Worker& worker_;
  RunDirectory* directory_;
  Corpus& corpus_;
  Corpus* validation_;
  Saves& saves_;
  EndReport report_;
  StepLog log_;
  int step_;                              ///< under way, counted from 0
  double limit_ = 0;                      ///< seconds that this step may take
  std::optional<StepScalars> known_;      ///< of this step, where they are known while it is under way
  std::optional<Evaluation> evaluation_;  ///< after this step
  bool save_due_ = false;                 ///< after this step
  std::string stopped_;
};

}  // namespace mindpipe
