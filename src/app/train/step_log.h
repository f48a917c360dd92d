#pragma once
#include <deque>
#include <optional>

#include "app/run/run.h"
#include "app/run/run_directory.h"
#include "app/train/report_end.h"
#include "core/progress.h"
#include "io/manifest.h"

namespace mindpipe {

/// What a run says of its steps: warnings, metrics, progress. A step is told of once its scalars are known,
/// which may be while later ones are under way.
class StepLog {
 public:
  /// `directory`: of the rank that writes, else none.
  /// `begun`: how far the run had come when it was taken up.
  StepLog(Run& run, RunDirectory* directory, EndReport& report, const RunProgress& begun);

  /// A step was begun and took so long until the next could be; in order.
  void add(int step, double seconds, double rate);
  /// A step's scalars are known: fails if the loss is not finite, says if nothing changed. Collective.
  void judge(const StepScalars& scalars);
  /// Writes the line of a step whose scalars are judged.
  void write(const StepScalars& scalars, const std::optional<Evaluation>& evaluation = {});

 private:
  struct Begun {
    int step = 0;
    double seconds = 0, rate = 0, before_first = 0;
  };
  const Begun& of(const StepScalars& scalars) const;

  Run& run_;
  RunDirectory* directory_;
  EndReport& report_;
  Progress progress_;
  Model::Counted counted_;
  std::int64_t skipped_;
  std::deque<Begun> begun_;
};

}  // namespace mindpipe
