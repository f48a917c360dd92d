#pragma once
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "app/run/run.h"
#include "runtime/worker.h"

namespace mindpipe {

class SubnetLog;

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

/// Prints what a supernet's run was and where its time went. Collective.
void print_subnets_report(Run& run, const SubnetLog& log);

/// Where the time of a run went, per stage, and what follows from it. Printed once, at the end.
class EndReport {
 public:
  EndReport(const Config& config, Worker& worker) : config_(config), worker_(worker) {}
  void add_step(double seconds, const StepScalars& scalars);
  double median_step() const;
  /// Collective: every rank brings its times; rank 0 prints.
  void print_table(bool is_rank_0);

 private:
  const Config& config_;
  Worker& worker_;
  std::vector<double> seconds_;
  double last_loss_ = 0;
};

}  // namespace mindpipe
