#pragma once
#include <deque>
#include <memory>
#include <vector>

#include "runtime/executor.h"
#include "runtime/late_answers.h"
#include "runtime/planning_thread.h"
#include "runtime/subnet_reports.h"
#include "runtime/wiring.h"
#include "trace/kept_actions.h"

namespace mindpipe {

struct SupernetConfig;
struct TraceConfig;
struct TrainConfig;

/// Who has subnets trained: brings their batches, says when to stop, and hears how it goes.
class SubnetCalls {
 public:
  virtual ~SubnetCalls() = default;
  /// Fills what a rank needs of a subnet's batch: its fields, the targets of the whole batch that count, the
  /// rate.
  virtual void load(const Subnet& subnet, StepInput& input) = 0;
  /// The targets that count of a subnet's batch, which another lane runs.
  virtual std::int64_t count(std::int64_t subnet) = 0;
  /// Hears that a stretch is about to run, which admits subnets [first, end).
  virtual void admits(std::int64_t /*first*/, std::int64_t /*end*/) {}
  /// Says, before each stretch, whether this rank wishes a drain as soon as may be (a stop, a save by the
  /// clock). It is heard one stretch later, by all ranks at the same place.
  virtual bool wishes_to_drain() { return false; }
  /// Hears what this rank's stage knows of a subnet, once its units here are updated.
  virtual void hear_part(const SubnetScalars& /*part*/) {}
  /// On rank 0 of the job: hears of each subnet, in the order of ids.
  virtual void hear(const SubnetScalars& /*scalars*/) {}
};

/// Feeds one rank's list of a supernet's training, a stretch of the stream at a time. While one runs the next
/// is planned.
class SubnetFeed : public Feed {
 public:
  static constexpr std::int64_t longest_stretch = 64;  ///< subnets

  /// Takes all its memory.
  SubnetFeed(Executor& executor, const RankState& state, const SupernetConfig& supernet,
             const TrainConfig& train, const TraceConfig& trace, const RunPlan& plan, LateAnswers& answers,
             Wiring& wiring);
  ~SubnetFeed() override;

  /// Whose calls these are from now on; to be said before anything is trained.
  void answer_to(SubnetCalls& calls) { calls_ = &calls; }
  /// Begins before subnet `first` (a multiple of the window) with the weights as they are; `stream` gives the
  /// subnets from there on. To be called at a drain. Where `first` is above 0, what all share has to be there
  /// in both versions (SharedWindows::begin) before they are trained.
  void begin(std::unique_ptr<Sampler> stream, std::int64_t first);
  /// Trains up to subnet `drain` (a multiple of the window, or the run's last + 1), or to an earlier multiple
  /// of the window where some rank wished one, but one stretch at least; nothing is under way then and all
  /// results are told. Gives back how many subnets are done. Collective.
  std::int64_t train_to(std::int64_t drain);
  /// Trains these subnets, as far as may be without those that follow; with `last`, to a drain, at which
  /// nothing is under way: a multiple of the window, or the end of the run. Begins by itself at first.
  void train(std::vector<Subnet> more, bool last);

  /// What this rank has done with the last subnets (trace.steps of them), at a drain.
  KeptActions* kept() override { return &kept_; }

  Script& script() { return script_; }
  Turn next() override;
  void drained() override;
  void progress() override;
  const StepInput& bring(const Action& forward) override;
  std::int64_t targets_of(std::int64_t subnet) override { return calls_->count(subnet); }
  void found(const Action& by, std::int64_t subnet, std::int64_t valid,
             std::span<const Tensor> numbers) override;
  void came(const UnitArrivals::Arrival& one) override {
    await_version(answers_, state_.residency.arrivals(), one);
  }

 private:
  void plan(std::int64_t goal, bool to_drain);
  PlannedStretch take_plan();
  Turn extend(PlannedStretch stretch);
  Agreement::Numbers answer();
  void keep_times();

  Executor& executor_;
  RankState state_;
  const RunPlan& plan_;
  Agreement& agreement_;
  Waiting& waiting_;
  std::int64_t window_, all_subnets_;
  double clip_;
  LateAnswers& answers_;
  SubnetReports reports_;
  Script script_;
  KeptActions kept_;
  SubnetCalls* calls_ = nullptr;
  Arena inputs_arena_;
  std::vector<StepInput> inputs_;  ///< inputs of the subnets in flight
  std::deque<Subnet> subnets_;     ///< subnets that are known and may be in flight
  std::int64_t known_ = 0;         ///< all ids below: those of stretches that have begun to run
  std::int64_t planned_ = 0;       ///< all ids below: those of the stretch that was asked for, too
  std::int64_t ended_ = 0;         ///< subnets below have ended with the stretch that ran last
  std::int64_t drain_ = 0;         ///< where to train to
  bool has_asked_ = false;         ///< the ranks for their wishes, and not heard them
  std::uint64_t hash_ = 0;         ///< hash of all plans up to the stretch that ran last
  std::unique_ptr<PlanningThread> planning_;
};

}  // namespace mindpipe
