#pragma once
#include <optional>
#include <string>

#include "app/run/resume.h"
#include "app/run/run.h"
#include "app/run/run_directory.h"
#include "app/run/run_history.h"
#include "io/manifest.h"
#include "runtime/checkpoint_writer.h"

namespace mindpipe {

/// When a run is saved, what a checkpoint says of it, and which checkpoints stay.
class Saves {
 public:
  /// `directory`: of the rank that writes, else none. `from`: the checkpoint that the run goes on from, which
  /// is not made again where it is the directory's own. Collective.
  Saves(Run& run, RunDirectory* directory, const RunProgress& begun, const std::optional<Resumed>& from);

  /// What the next checkpoint says of how far the run has come, and of samples that are left out.
  RunProgress& progress() { return progress_; }
  /// What all steps were computed with.
  const RunHistory& history() const { return history_; }
  /// The run is back at a checkpoint of its own, with this progress.
  void go_back_to(const Manifest& from, const RunProgress& progress);

  /// Whether a checkpoint is due after this many steps by their number.
  bool due(std::int64_t steps) const;
  /// Whether one is due by the time since the last one began; rank 0 decides.
  bool due_by_time() const;
  /// The time until a last save would be whole, behind one that is under way or due within the next steps;
  /// half as much again as the longest so far is left for it. Known on rank 0.
  double seconds_to_save(std::int64_t steps, std::int64_t ahead) const;
  /// Hears of the loss of an evaluation.
  void evaluated(std::int64_t steps, double loss);

  /// Saves the run as it is after so many steps, unless it has been. Collective.
  void save(std::int64_t steps);
  /// Whether this rank's writing keeps a save from coming to its end.
  bool writes() const { return writer_ && writer_->writes(); }
  /// Moves a save under way on; `all_written`: no rank `writes`. Collective.
  void attend(bool all_written);
  /// Waits until what was saved is a checkpoint. Collective.
  void finish();
  /// What a start does that follows a run's end after so many steps.
  std::string next_start(std::int64_t steps) const;

 private:
  Manifest manifest_after(std::int64_t steps) const;
  void pass_over_newer();
  void find_in_a_row();
  bool is_damaged(std::int64_t step) const;
  bool is_gone_back_to(std::int64_t step) const;
  void tell();
  void retire(const Manifest& newest);

  Run& run_;
  RunDirectory* directory_;
  std::unique_ptr<CheckpointWriter> writer_;  ///< none: the run computes nothing that could be saved
  std::vector<std::int64_t> damaged_;   ///< steps whose checkpoints were passed over when the run came back
  std::vector<std::int64_t> in_a_row_;  ///< steps whose checkpoints no run goes back to: they changed nothing
  RunProgress progress_;
  RunHistory history_;
  std::int64_t restarts_, began_ns_ = now_ns();
  double longest_ = 0;                   ///< seconds of a save
  bool under_way_ = false;               ///< whether a save has neither become whole nor come to nothing
  std::int64_t saved_ = -1, made_ = -1;  ///< steps of the last save that was begun, and that became whole
};

}  // namespace mindpipe
