#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "app/run/run.h"
#include "app/run/run_directory.h"
#include "core/progress.h"
#include "io/manifest.h"
#include "supernet/sampler.h"

namespace mindpipe {

/// What a run says of its subnets, on rank 0: metrics in the order of ids, warnings, progress, and at its end
/// how fast they came.
class SubnetLog {
 public:
  /// `directory`: of the rank that writes, else none. `begun`: how far the run had come when it was taken up.
  SubnetLog(Run& run, RunDirectory* directory, const RunProgress& begun);

  /// The next subnet has ended on all stages.
  void add(const SubnetScalars& scalars);
  /// Writes the line of the newest subnet, which waits for what an evaluation adds to it.
  void write_newest(const std::optional<Evaluation>& evaluation = {});
  /// The first subnet whose loss was no number; -1: none.
  std::int64_t not_finite() const { return not_finite_; }

  std::int64_t subnets() const { return subnets_; }  ///< of this start
  /// Seconds that a subnet adds to the run, the first ones left out.
  double seconds_each() const;
  double mean_loss() const;  ///< of the last ones: single subnets differ
  std::int64_t clipped() const { return clipped_; }
  std::int64_t skipped() const { return skipped_; }
  std::int64_t units() const { return units_; }

 private:
  Run& run_;
  RunDirectory* directory_;
  Progress progress_;
  std::unique_ptr<Sampler> stream_;  ///< for the choices of metrics' lines
  std::optional<SubnetScalars> newest_;
  Subnet newest_subnet_;
  std::int64_t not_finite_ = -1;
  std::vector<double> last_losses_;
  std::int64_t subnets_ = 0, units_ = 0, clipped_ = 0, skipped_ = 0;
  double first_end_ = 0, newest_end_;  ///< seconds of the run
  double newest_seconds_ = 0;          ///< since the subnet before
};

}  // namespace mindpipe
