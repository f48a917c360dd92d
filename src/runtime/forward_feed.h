#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "program/check/list_check.h"
#include "runtime/executor.h"
#include "runtime/found_words.h"
#include "runtime/late_answers.h"
#include "runtime/wiring.h"

namespace mindpipe {

/// A network and the batches that go through it, one behind the other: first those, if any, on which it is
/// calibrated.
struct ForwardTask {
  std::vector<std::uint8_t> choice = {};  ///< each block's candidate; none: the model has no choices
  std::vector<std::int64_t> batches;
};

/// Feeds a list of forwards alone, without dropout, that takes batches through networks of a model as it is
/// asked: several tasks are under way at once, and what they have found reaches all ranks beside them. All of
/// it is collective: every rank of the job asks the same functions in the same order.
class ForwardFeed : public Feed {
 public:
  /// What a run is told, and tells.
  struct Tasks {
    /// The task that is next; none: there are no more. It is asked for once `hear` was called for all that
    /// are `lag` tasks or more before it; 0: as many before it as fill the pipeline.
    std::function<std::optional<ForwardTask>()> next;
    std::int64_t lag = 0;
    std::int64_t batches = 1;       ///< batches of each task
    std::int64_t calibrations = 0;  ///< how many of them, the first, only calibrate
    /// Brings a batch, unless it is there; it stays as it is until another is asked for.
    std::function<const StepInput&(std::int64_t batch)> load;
    /// Hears of each task, in order: what was found of each of its batches that do not only calibrate.
    std::function<void(const std::vector<Evaluation>& of_batches)> hear = {};
    /// Whether this rank wishes an end; where one does, none is asked for once the task is heard of with
    /// which all ranks learn of it, and those that are under way go on to their ends.
    std::function<bool()> wish = {};
    /// Hears that a batch is about to run here.
    std::function<void(std::int64_t batch)> before = {};
  };

  ForwardFeed(Executor& executor, const RankState& state, const RunPlan& plan, LateAnswers& answers,
              Wiring& wiring);
  ~ForwardFeed() override { executor_.actions().leave(*this); }

  /// Runs tasks until there are no more, from drain to drain.
  void run(const Tasks& tasks);

  Script& script() { return script_; }
  Turn next() override;
  void drained() override { tasks_ = nullptr; }
  void progress() override { tell(); }
  const StepInput& bring(const Action& forward) override;
  void found(const Action& by, std::int64_t batch, std::int64_t valid,
             std::span<const Tensor> losses) override;

 private:
  /// A task that is under way, with what this rank tells of it.
  struct Open {
    ForwardTask task;
    Agreement::Numbers found;
    std::int64_t batches_found = 0;
  };

  void ask();
  void extend();
  Turn one_batch();
  void hear();
  void tell();
  std::int64_t told_batches() const { return tasks_->batches - tasks_->calibrations; }
  std::int64_t known() const { return asked_ * tasks_->batches; }
  std::int64_t place_of(std::int64_t passage) const { return passage % tasks_->batches; }
  Open& open_of(std::int64_t passage) {
    return open_[static_cast<std::size_t>(passage / tasks_->batches - heard_)];
  }
  std::int64_t batch_of(std::int64_t passage) {
    return open_of(passage).task.batches[static_cast<std::size_t>(place_of(passage))];
  }

  Executor& executor_;
  bool speaks_;  ///< whether this rank tells what it has found
  GradientUpdates& updates_;
  const PlannedForwards& plan_;
  const Layout& layout_;
  LateAnswers& answers_;
  Agreement& agreement_;
  Waiting& waiting_;
  FoundWords words_;
  Script script_;
  StepInput input_;
  const Tasks* tasks_ = nullptr;  ///< tasks of the run
  std::optional<ForwardStretches> writer_;
  std::optional<ListCheck> books_;                        ///< prove what is written before it runs
  std::int64_t most_ = 1;                                 ///< tasks in flight
  std::int64_t asked_ = 0, told_ = 0, heard_ = 0;         ///< tasks
  std::int64_t written_ = 0, ran_ = 0;                    ///< passages of a batch through its network, here
  std::int64_t forwards_written_ = 0, forwards_ran_ = 0;  ///< on this rank
  bool over_ = false;                                     ///< no task is asked for any more
  std::int64_t loaded_ = -1;  ///< the passage whose batch and network are in the input
  std::deque<Open> open_;     ///< from number `heard_` on
};

}  // namespace mindpipe
