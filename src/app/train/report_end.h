#pragma once
#include <cstring>
#include <deque>
#include <string>
#include <type_traits>
#include <vector>

#include "app/run/run.h"
#include "runtime/worker.h"

namespace mindpipe {

/// "12.3k"
std::string human_count(double value);

/// A row of integers of each stage (of each lane), given by its first rank, brought together by a sum with
/// zeros. Collective.
template <class Row>
std::vector<Row> of_stages(Worker& worker, const Row& mine) {
  const Layout& layout = worker.layout();
  const int ranks = layout.grid.supernet * layout.grid.pipeline;
  static_assert(std::has_unique_object_representations_v<Row>, "a row of integers");
  constexpr std::size_t columns = sizeof(Row) / sizeof(std::int64_t);
  std::vector<std::int64_t> rows(ranks * columns, 0);
  if (layout.coord.tensor == 0 && layout.coord.data == 0)
    std::memcpy(&rows[layout.program_rank() * columns], &mine, sizeof(Row));
  worker.wiring().sum_over_grid(rows);
  std::vector<Row> stages(ranks);
  std::memcpy(static_cast<void*>(stages.data()), rows.data(), stages.size() * sizeof(Row));
  return stages;
}

/// What a start of a run has trained, where its time went, stage by stage, and what follows from it. Printed
/// once, at the end. How long one takes, and what is said of all, is a matter of what is trained:
/// StepEndReport, SubnetEndReport.
class EndReport {
 public:
  explicit EndReport(Run& run) : run_(run) {}
  virtual ~EndReport() = default;

  /// A step took so long, or a subnet came so long after the one before.
  virtual void add(double seconds, double loss);
  /// How much the noise scale of the newest measured steps is; none: not known yet.
  void set_noise_scale(const std::optional<NoiseScale::Estimate>& estimate) { noise_scale_ = estimate; }
  /// Counts what became of the units of a subnet.
  void add_units(const SubnetScalars& scalars);

  std::int64_t trained() const { return std::ssize(seconds_); }  ///< steps or subnets of this start
  /// Seconds that a step takes, or that a subnet adds to the run.
  virtual double seconds_each() const = 0;
  double mean_loss() const;  ///< mean over the last subnets, since single ones differ

  /// Collective: every rank brings its times; rank 0 prints. `notes`: what `replay` says of who is slow.
  void print_table(const std::vector<std::string>& notes);

 protected:
  /// What is said above the traffic; rank 0's is printed, where something was trained. `stages`: what each
  /// has spent; `notes`: a line each. Collective.
  virtual std::string text(const std::vector<TimeSpent>& stages, const std::string& notes) = 0;
  std::string speed(const char* of_what) const;

  Run& run_;
  std::vector<double> seconds_;
  double all_seconds_ = 0;
  std::deque<double> last_losses_;
  std::optional<NoiseScale::Estimate> noise_scale_;
  std::int64_t units_ = 0, clipped_ = 0, skipped_ = 0;
};

}  // namespace mindpipe
