#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "plan/run_plan.h"
#include "program/stretches.h"
#include "runtime/executor.h"
#include "supernet/sampler.h"

namespace mindpipe {

/// What rank 0 knows of a subnet once all stages have ended it.
struct SubnetScalars {
  std::int64_t subnet = 0;
  double loss = 0;
  std::int64_t valid = 0, units = 0, clipped = 0, skipped = 0;
  double seconds = 0;
};

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
  static constexpr int subnets_of_a_stretch = 64;
  void begin(std::unique_ptr<Sampler> stream, std::int64_t first) {
    stream_ = std::move(stream);
    done_ = first;
    if (first == 0) begin();
  }
  void on_stretch(std::function<void(std::int64_t, std::int64_t)> hear) { stretch_ = hear; }
  void on_wish(std::function<bool()> ask) { ask_ = ask; }
  void on_scalars(std::function<void(const SubnetScalars&)> hear) {
    actions_.on_result([this, hear](const SubnetResult& r) {
      const auto& in = inputs_[r.subnet % inputs_.size()];
      hear({r.subnet, r.loss / in.valid, in.valid, r.units, r.clipped, r.skipped, 0.1});
    });
  }
  std::int64_t train_to(std::int64_t cut) {
    while (done_ < cut) {
      std::vector<Subnet> more;
      for (int i = 0; i < 64 && done_ < cut; ++i, ++done_) more.push_back(stream_->next());
      if (stretch_) stretch_(more.front().id, done_);
      bool last = done_ == cut || (ask_() && done_ % 16 == 0);
      train(more, last);
      if (last) break;
    }
    return done_;
  }
  std::unique_ptr<Sampler> stream_;
  std::int64_t done_ = 0;
  std::function<bool()> ask_;
  std::function<void(std::int64_t, std::int64_t)> stretch_;
  void on_result(std::function<void(const SubnetResult&)> hear) { actions_.on_result(std::move(hear)); }

  SubnetActions& actions() { return actions_; }
  Script& script() { return script_; }
  const CausalPlanner& planner() const { return stretches_.planner(); }

 private:
  void load(std::int64_t subnet);

  Executor& executor_;
  SubnetActions actions_;
  Stretches stretches_;
  Script script_;
  Load load_;
  Arena inputs_arena_;
  std::vector<StepInput> inputs_;  ///< of the subnets in flight
  std::deque<Subnet> subnets_;     ///< that are known and may be in flight
};

}  // namespace mindpipe
