#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "comm/agreement.h"
#include "plan/run_plan.h"
#include "runtime/executor.h"
#include "runtime/late_answers.h"
#include "runtime/planning_thread.h"
#include "runtime/subnet_reports.h"
#include "trace/pass_times.h"

namespace mindpipe {

/// What the ranks that train subnets tell each other beside their lists. `reports`: of the program's ranks,
/// in the host's memory; null where there is one. `pinned`: memory of the host, where it may not read the
/// backend's.
struct SubnetWires {
  Waiting& waiting;
  Agreement& agreement;
  Channels* reports = nullptr;
  Memory* pinned = nullptr;
};

/// Trains the subnets of a supernet on one rank, a stretch of the stream at a time. While one runs the next
/// is planned.
class SubnetTrainer : private mindpipe::Feed {
 public:
  static constexpr std::int64_t longest_stretch = 64;  ///< subnets

  /// Fills what a rank needs of a subnet's batch: its fields, the targets of the whole batch that count, the
  /// rate.
  using Load = std::function<void(const Subnet& subnet, StepInput& input)>;
  /// That, and the targets that count of a subnet's batch, which another lane runs.
  struct Feed {
    Load load;
    std::function<std::int64_t(std::int64_t subnet)> count = {};
  };

  /// Takes all its memory. `fields`: that blocks here read.
  SubnetTrainer(Executor& executor, const RankState& state, const Config& config, const RunPlan& plan,
                const std::vector<Field>& fields, Feed feed, SubnetWires wires);
  ~SubnetTrainer() override;

  /// Begins before subnet `first` (a multiple of the window) with the weights as they are; `stream` gives the
  /// subnets from there on. To be called at a cut. Where `first` is above 0, what all share has to be there
  /// in both versions (SharedWindows::begin) before they are trained.
  void begin(std::unique_ptr<Sampler> stream, std::int64_t first);
  /// Begins before subnet 0 with the weights as they are, for `train`, which does so by itself at first.
  void begin() { begin(nullptr, 0); }
  /// Hears that a stretch is about to run, which admits subnets [first, end).
  void on_stretch(std::function<void(std::int64_t first, std::int64_t end)> hear) {
    on_stretch_ = std::move(hear);
  }
  /// Asks, before each stretch, whether this rank wishes a cut as soon as may be (a stop, a save by the
  /// clock). It is heard one stretch later, by all ranks at the same place.
  void on_wish(std::function<bool()> wish) { wish_ = std::move(wish); }
  /// On rank 0 of the job: hears of each subnet, in the order of ids.
  void on_scalars(std::function<void(const SubnetScalars&)> hear) { reports_.on_scalars(std::move(hear)); }
  /// Hears of each subnet once its units here are updated.
  void on_result(std::function<void(const SubnetResult&)> hear) { on_result_ = std::move(hear); }

  /// Trains up to subnet `cut` (a multiple of the window, or the run's last + 1), or to an earlier multiple
  /// of the window where some rank wished one, but one stretch at least; nothing is under way then and all
  /// results are told. Gives back how many subnets are done. Collective.
  std::int64_t train_to(std::int64_t cut);
  /// Trains these subnets, as far as may be without those that follow; with `last`, to a cut, at which
  /// nothing is under way: a multiple of the window, or the end of the run.
  void train(std::vector<Subnet> more, bool last);

  /// What this rank has done with the last subnets (trace.steps of them), at a cut.
  std::vector<KeptAction> traced();

  /// How long the passes of the last subnets took here, at a cut.
  const PassTimes& pass_times() const { return pass_times_; }

  Script& script() { return script_; }
  /// How long the compute queue has waited so far, by reason. (Where the device's queues carry the messages
  /// only it knows; there is nothing but the plan then.)
  const SubnetWaits& waits() const { return script_.waits; }

 private:
  struct Wishes {
    bool cut = false, same_plans = true;
  };
  void progress() override;
  const StepInput& bring(const Action& forward) override;
  std::int64_t targets_of(std::int64_t subnet) override { return count_(subnet); }
  void found(const Action& by, std::int64_t subnet, std::int64_t valid,
             std::span<const Tensor> numbers) override;
  void came(std::int64_t subnet, int unit, std::int64_t due, const Tensor& version) override;
  bool tells_of(int unit) const;
  void hear(const Action& by, SubnetResult result, std::span<const double> numbers);
  void plan_first();
  void plan_next(std::int64_t goal);
  PlannedStretch take_plan();
  void ask(bool wish);
  Wishes answer();
  void run(PlannedStretch stretch);
  void keep();

  Executor& executor_;
  RankState state_;
  const RunPlan& plan_;
  Memory& memory_;
  SubnetWires wires_;
  int rank_;  ///< of the program
  std::int64_t window_, all_subnets_;
  double clip_;
  LateAnswers answers_;
  SubnetReports reports_;
  Script script_;
  std::int64_t kept_ = 0;  ///< actions of the list whose times were kept
  PassTimes pass_times_;
  Load load_;
  std::function<std::int64_t(std::int64_t)> count_;
  std::function<void(std::int64_t, std::int64_t)> on_stretch_;
  std::function<bool()> wish_;
  std::function<void(const SubnetResult&)> on_result_;
  Arena inputs_arena_;
  std::vector<StepInput> inputs_;  ///< of the subnets in flight
  std::deque<Subnet> subnets_;     ///< that are known and may be in flight
  std::int64_t known_ = 0;         ///< all ids below: those of stretches that have begun to run
  std::int64_t planned_ = 0;       ///< and of the one that was asked for
  std::uint64_t hash_ = 0;         ///< of all plans up to the stretch that ran last
  std::unique_ptr<PlanningThread> planning_;
  int told_units_ = 0;      ///< units that all share and this stage tells of
  SubnetResult of_window_;  ///< as far as they are updated
};

}  // namespace mindpipe
