#pragma once
#include <deque>
#include <map>
#include <memory>
#include <optional>

#include "app/energy/run_energy.h"
#include "app/run/run.h"
#include "app/run/run_directory.h"
#include "app/train/evaluation.h"
#include "app/train/report_end.h"
#include "core/progress.h"
#include "io/manifest.h"
#include "runtime/balancer.h"
#include "runtime/tensor_norms.h"
#include "supernet/sampler.h"

namespace mindpipe {

/// What a run says of its steps, or of its subnets in the order of ids (on rank 0): warnings, metrics,
/// progress. Each is told of once its scalars are known, which may be while later ones are under way.
class StepLog {
 public:
  /// `directory`: of the rank that writes, else none.
  /// `begun`: how far the run had come when it was taken up.
  /// `energy`: adds its joules to lines; may be none.
  StepLog(Run& run, RunDirectory* directory, EndReport& report, const RunProgress& begun, RunEnergy* energy);

  /// The first step, or subnet, of this start begins; metrics.jsonl ends where the run goes on.
  void begin();
  /// A step was begun and took so long until the next could be; in order.
  void begun(int step, double seconds);
  /// The newest step's tensors were measured.
  void measured(const TensorSquares& squares) { measured_ = {begun_.back().step, squares}; }
  /// Blocks move in a step, behind which this is the cut.
  void moves(int step, const std::vector<int>& cuts) { cuts_behind_[step] = cuts; }
  /// Behind a step something is known of how stages are balanced.
  void balances(int step, const Balancer::News& news) { balanced_.emplace(step, news); }
  /// The next step's scalars are known: says if it changed nothing.
  void add(const StepScalars& scalars);
  /// The run is back at this progress: steps behind it are forgotten.
  void go_back_to(const RunProgress& progress);
  /// Lines of subnets, from the next on, have the choices of this stream.
  void name_choices(std::unique_ptr<Sampler> stream) { stream_ = std::move(stream); }
  /// The next subnet has ended on all stages: says which of its units changed nothing.
  void add(const SubnetScalars& scalars);
  /// Writes the line of the newest step, or subnet, which waits for what an evaluation adds to it, and behind
  /// it a line for each of several held-out sources.
  void write_newest(const std::optional<HeldOutEvaluation>& found = {});

 private:
  struct Begun {
    int step = 0;
    double seconds = 0, before = 0;
  };
  struct Newest {
    std::int64_t done = 0;  ///< with it
    JsonLine line;
    std::string words;
  };
  void keep(std::int64_t done, JsonLine line, std::string words);
  void add_names(JsonLine& line);
  void remember_noise();
  void add_norms(double gradient_norm, JsonLine& line);
  void add_noise(const GradientNoise& measured, JsonLine& line);

  Run& run_;
  RunDirectory* directory_;
  EndReport& report_;
  RunEnergy* energy_;
  Progress progress_;
  Model::Counted counted_;
  NoiseScale noise_;
  std::int64_t skipped_;             ///< steps so far that changed nothing
  std::deque<Begun> begun_;          ///< steps whose scalars are not known
  std::unique_ptr<Sampler> stream_;  ///< for the choices of subnets' lines
  double newest_end_ = 0;            ///< when the newest subnet ended, in seconds of the run
  struct Measured {
    int step = -1;
    TensorSquares squares;
  };
  Measured measured_;                            ///< newest step whose tensors were
  std::map<int, std::vector<int>> cuts_behind_;  ///< steps that move blocks, whose scalars are not known
  std::map<int, Balancer::News> balanced_;       ///< what is known behind such steps of stages' balance
  std::optional<Newest> newest_;
  bool is_named_ = false;  ///< whether a line of this start has the names of arithmetic and course
};

}  // namespace mindpipe
