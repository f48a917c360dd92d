#pragma once
#include <optional>
#include <string>

#include "app/run/run.h"
#include "app/run/run_directory.h"
#include "app/train/saves.h"
#include "app/train/subnet_log.h"

namespace mindpipe {

/// The training of a supernet, from one cut to the next: where it is evaluated, saved, or asked to stop.
/// Cuts lie between windows.
class SubnetLoop : public SubnetCalls {
 public:
  /// `directory`: of the rank that writes, else none. `validation`: none where nothing is evaluated.
  /// `begun`: how far the run had come when it was taken up. Collective.
  SubnetLoop(Run& run, RunDirectory* directory, Corpus& corpus, Corpus* validation, Saves& saves,
             const RunProgress& begun);

  /// Trains all subnets and tells of each. Collective.
  void run();
  /// Prints where the time went. Collective.
  void report();

  std::int64_t done() const { return done_; }
  /// "stopped after subnet 127 as asked"; empty: all subnets are done.
  const std::string& stopped() const { return stopped_; }

 private:
  bool goes_on() const { return done_ < run_.last_step() && stopped_.empty(); }
  void tell_costs() const;
  std::int64_t next_cut() const;
  void load(const Subnet& subnet, StepInput& input) override;
  std::int64_t count(std::int64_t subnet) override;
  void admits(std::int64_t first, std::int64_t end) override;
  bool wishes_a_cut() override;
  void hear(const SubnetScalars& scalars) override { log_.add(scalars); }
  bool wishes_to_stop() const;
  void evaluate();
  void agree();

  Run& run_;
  const Config& config_;
  Worker& worker_;
  RunDirectory* directory_;
  Corpus& corpus_;
  Corpus* validation_;
  Saves& saves_;
  SubnetLog log_;
  std::int64_t done_;
  bool save_due_ = false;
  std::string stopped_;
};

}  // namespace mindpipe
