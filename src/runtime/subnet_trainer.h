#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "plan/run_plan.h"
#include "program/stretches.h"
#include "runtime/executor.h"

namespace mindpipe {

/// Trains the subnets of a supernet on one rank, a stretch of the stream at a time.
class SubnetTrainer {
 public:
  /// Fills what a rank needs of a subnet's batch: its fields, the targets of the whole batch that count, the
  /// rate.
  using Load = std::function<void(const Subnet& subnet, StepInput& input)>;

  /// Takes all its memory. `fields`: that blocks here read.
  SubnetTrainer(Executor& executor, Stage& stage, GradientUpdates& updates, Groups groups,
                const Config& config, const RunPlan& plan, const std::vector<Field>& fields, Load load);

  /// Begins with the weights as they are.
  void begin() { actions_.windows().begin(); }
  /// Trains these subnets, as far as may be without those that follow; with `last`, to a cut, at which
  /// nothing is under way.
  void train(std::vector<Subnet> more, bool last);
  void on_result(std::function<void(const SubnetResult&)> hear) { actions_.on_result(std::move(hear)); }

  /// What this rank has done with the last subnets (trace.steps of them), at a cut.
  std::vector<KeptAction> traced();

  SubnetActions& actions() { return actions_; }
  Script& script() { return script_; }
  const CausalPlanner& planner() const { return stretches_.planner(); }

 private:
  void load(std::int64_t subnet);
  void keep();

  Executor& executor_;
  SubnetActions actions_;
  Stretches stretches_;
  Script script_;
  std::int64_t kept_ = 0;  ///< actions of the list that were kept for the trace
  Load load_;
  Arena inputs_arena_;
  std::vector<StepInput> inputs_;  ///< of the subnets in flight
  std::deque<Subnet> subnets_;     ///< that are known and may be in flight
};

}  // namespace mindpipe
