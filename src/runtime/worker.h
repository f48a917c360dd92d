#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/evaluator.h"
#include "runtime/plans_by_cut.h"
#include "runtime/subnet_feed.h"
#include "runtime/wiring.h"
#include "state/model_state.h"

namespace mindpipe {

/// Makes a rank's backend over its memory.
using MakeBackend = std::function<std::unique_ptr<Backend>(const Config& config, Memory& memory, int threads,
                                                           const World& world)>;
std::unique_ptr<Backend> make_backend(const Config& config, Memory& memory, int threads, const World& world);

/// One rank of a run: backend, wiring, its part of the model, the executor over them, and what feeds it.
class Worker {
 public:
  /// Makes a rank and takes all memory that it works in. Collective over the world.
  /// `watchdog`, unless none, hears what is waited for and asks the transports for trouble; it outlives the
  /// worker.
  Worker(const Config& config, const World& world, Watchdog* watchdog = nullptr,
         Purpose purpose = Purpose::training)
      : Worker(config, world, make_run_plan(config, purpose), make_backend, make_transports, watchdog) {}
  /// A worker with the arenas that `plan` says, which may be larger than needed.
  Worker(const Config& config, const World& world, RunPlan plan, const MakeBackend& make = make_backend,
         const MakeTransports& connect = make_transports, Watchdog* watchdog = nullptr);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// One optimizer step on samples [first_sample, first_sample + batch) of the corpus; gives back what is
  /// known (StepFeed::run).
  std::optional<StepScalars> step(Corpus& corpus, std::int64_t step, std::int64_t first_sample, double rate);
  /// The step of an input that is here; blocks move in it where one of the run's moves says so.
  std::optional<StepScalars> run(const StepInput& input);
  /// The plan of the step behind `done` steps, if blocks move in it; or null.
  const RunPlan* move_behind(std::int64_t done) const { return plans_.move_behind(done); }
  /// Lets these moves come next, the first from the present cut: all ranks the same, between two steps.
  void go_on_with(std::vector<PlannedMove> moves) { plans_.go_on_with(std::move(moves)); }
  /// What is to be ended before blocks move; collective.
  std::function<void()> before_move;
  /// Takes the cut that the run has behind `done` steps, before all of the state is loaded.
  void go_to(std::int64_t done);
  /// Feeds the training step. A worker that only reads, or trains subnets, has none.
  StepFeed& steps() { return *steps_; }
  /// What this rank runs to train: the step, or subnets.
  Script& training() { return subnets_ ? subnets_->script() : steps_->script(); }
  /// Feeds the training of subnets; null where steps are trained.
  SubnetFeed* subnets() { return subnets_.get(); }
  /// Evaluates and scores.
  Evaluator& evaluator() { return *evaluator_; }
  /// Feeds evaluations and scores.
  ForwardFeed& forwards() { return *forwards_; }

  const Config& config() const { return *config_; }
  const Layout& layout() const { return wiring_.layout; }
  const RunPlan& plan() const { return plan_; }
  Backend& backend() { return *backend_; }
  Memory& memory() { return memory_; }
  /// The memory of the host in which masters and moments are kept, where the device does not keep them.
  const Memory& host() const { return host_; }
  Stage& stage() { return *stage_; }
  GradientUpdates& updates() { return *updates_; }
  Residency& residency() { return *residency_; }
  /// All values are whole behind this call, which is collective over the data axis: the state is read, and
  /// set, between two steps.
  ModelState& state() {
    settle();
    return *state_;
  }
  /// Brings together values that the newest step has left in shares. Collective over the data axis.
  void settle() { executor_->actions().settle(); }
  Executor& executor() { return *executor_; }
  BatchInputs& inputs() { return *inputs_; }
  Wiring& wiring() { return wiring_; }
  TrafficLedger& ledger() { return wiring_.ledger; }
  Waiting& waiting() { return wiring_.waiting; }
  Communicator& group(Axis axis) { return wiring_.group(axis); }
  const World& world() const { return world_; }
  /// Where a copy of the state that this rank writes lies, in the host's memory; null where the run has none.
  std::byte* copy_memory() {
    return copy_.size() > 0 ? static_cast<std::byte*>(copy_.address_of(0)) : nullptr;
  }
  int threads() const { return threads_; }

 private:
  void make_stage();
  void keep_units();
  void make_executor();
  void make_feeds();
  void reserve();
  void make_copy_room();
  void make_state();
  void make_evaluation();
  void take_cut();
  WorkMemory work_memory();
  RankState state_of_rank() { return {*stage_, *residency_, *updates_, windows_.get()}; }

  std::unique_ptr<const Config> config_;
  PlansByCut plans_;
  const RunPlan& plan_;  ///< the present one
  World world_;
  Memory memory_;
  Memory host_;  ///< where masters and moments are kept, and segments of swapped blocks wait
  int threads_;
  std::unique_ptr<Backend> backend_;
  Wiring wiring_;
  std::unique_ptr<Stage> stage_;
  std::unique_ptr<Residency> residency_;
  std::unique_ptr<GradientUpdates> updates_;
  std::unique_ptr<SharedWindows> windows_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<LateAnswers> answers_;
  std::unique_ptr<StepFeed> steps_;
  std::unique_ptr<SubnetFeed> subnets_;
  std::unique_ptr<ForwardFeed> forwards_;
  std::unique_ptr<ModelState> state_;
  Arena copy_;
  std::unique_ptr<BatchInputs> inputs_;
  std::unique_ptr<Evaluator> evaluator_;
};

}  // namespace mindpipe
