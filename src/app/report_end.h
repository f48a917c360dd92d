#pragma once
#include <string>
#include <vector>

#include "app/run.h"
#include "runtime/worker.h"

namespace mindpipe {

/// "12.3k"
std::string human_count(double value);

class SubnetLog;
/// One row of times for each stage, given by its first rank. Collective.
std::vector<TimeSpent> times_of_stages(Worker& worker, Script& script);
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
