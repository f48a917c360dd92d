#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/device_transports.h"
#include "comm/process_grid.h"
#include "comm/reduction.h"
#include "comm/staging.h"
#include "corpus/corpus.h"
#include "plan/run_plan.h"
#include "runtime/batch_inputs.h"
#include "runtime/forward_stream.h"
#include "runtime/subnet_trainer.h"
#include "state/model_state.h"

namespace mindpipe {

/// Makes a rank's backend over its memory.
using MakeBackend = std::function<std::unique_ptr<Backend>(const Config& config, Memory& memory, int threads,
                                                           const World& world)>;
std::unique_ptr<Backend> make_backend(const Config& config, Memory& memory, int threads, const World& world);

/// Says what carries messages between the ranks' devices.
using MakeTransports = std::function<DeviceTransports(const Config& config, const World& world,
                                                      Backend& backend, Waiting& waiting)>;
DeviceTransports make_transports(const Config& config, const World& world, Backend& backend,
                                 Waiting& waiting);

/// What a search is told of networks and asks of them. Every rank has one that does the same.
struct ScoreStream {
  /// The network that is next; none: no more. It is asked for once `hear` was called for all that are `lag`
  /// networks or more before it in this stream.
  std::function<std::optional<Subnet>()> next;
  /// Hears of each network, in order: what was found of each batch.
  std::function<void(const std::vector<Evaluation>& of_batches)> hear;
  /// Whether this rank wishes the stream to end; where one does, no network is asked for after one place that
  /// is the same on all ranks. Those that are under way are still heard of.
  std::function<bool()> wish = {};
  std::int64_t lag = 0;  ///< 0: as many networks as fill the pipeline
};

/// One rank of a run: backend, groups, its part of the model, and the executor over them.
class Worker {
 public:
  /// Makes a rank and takes all memory that steps and evaluations work in. Collective over the world.
  /// `watchdog`, unless none, hears what is waited for and asks the transports for trouble; it outlives the
  /// worker.
  Worker(const Config& config, const World& world, Watchdog* watchdog = nullptr,
         Purpose purpose = Purpose::training)
      : Worker(config, world, make_run_plan(config, purpose), make_backend, make_transports, watchdog) {}
  /// A worker with the arenas that `plan` says, which may be larger than needed.
  Worker(const Config& config, const World& world, RunPlan plan, const MakeBackend& make = make_backend,
         const MakeTransports& connect = make_transports, Watchdog* watchdog = nullptr);
  ~Worker();

  /// One optimizer step on samples [first_sample, first_sample + batch) of the corpus; gives back what is
  /// known (Executor::run).
  std::optional<StepScalars> step(Corpus& corpus, std::int64_t step, std::int64_t first_sample, double rate);
  /// Batches [0, batches) of the corpus, without dropout; of a supernet by each of the subnets that its
  /// evaluations ask, calibrated before if it has batch norms. `before` hears of each batch before it begins.
  Evaluation evaluate(Corpus& corpus, std::int64_t batches,
                      const std::function<void(std::int64_t batch)>& before = {});
  /// What is found of one batch that lies in an input here.
  Evaluation evaluate(const StepInput& input);
  /// Scores networks, each by batches [0, batches) of the corpus, without dropout and with the weights as
  /// they are. `before` hears of each batch of each network before it begins here.
  void score(Corpus& corpus, std::int64_t batches, const ScoreStream& stream,
             const std::function<void(std::int64_t batch)>& before = {});
  /// The least lag of a stream of scores, each of so many batches, with which all stages have something to
  /// do: as many networks are in flight.
  std::int64_t least_lag(std::int64_t batches) const {
    return scores_in_flight(plan_.outline, calibrations() + batches);
  }

  /// Passes the last batch through the model again and shows every block's output. Collective over the job.
  void inspect(std::function<void(int block, const Boundary& out)> look);
  /// Exact sum over all ranks of the grid. Collective.
  void sum_over_grid(std::vector<std::int64_t>& values, TrafficClass kind = TrafficClass::scalars);
  Communicator& group(Axis axis) {
    return axis == Axis::tensor     ? *tensor_
           : axis == Axis::data     ? *data_
           : axis == Axis::pipeline ? *pipeline_
                                    : *lanes_;
  }

  const Config& config() const { return config_; }
  const Layout& layout() const { return layout_; }
  const RunPlan& plan() const { return plan_; }
  Backend& backend() { return *backend_; }
  Memory& memory() { return memory_; }
  Stage& stage() { return *stage_; }
  GradientUpdates& updates() { return *updates_; }
  Residency& residency() { return *residency_; }
  ModelState& state() { return *state_; }
  Executor& executor() { return *executor_; }
  /// The training step as this rank runs it. A worker that only reads has none.
  Script& training() { return *training_; }
  /// Runs evaluations and scores.
  ForwardStream& forwards() { return *forwards_; }
  BatchInputs& inputs() { return *inputs_; }
  /// Trains subnets; null where steps are trained.
  SubnetTrainer* subnets() { return subnets_.get(); }
  /// The oldest scalars of training steps that `step` has not given back, once they are known; none: it has
  /// given back all.
  std::optional<StepScalars> remaining() { return training_->answers.oldest(); }
  TrafficLedger& ledger() { return ledger_; }
  Waiting& waiting() { return waiting_; }
  /// What carries messages between devices, in words; empty where the host does and could not do otherwise.
  const std::string& carrier() const { return carrier_.why; }
  const World& world() const { return world_; }
  /// All ranks of the job; null where there is one.
  Group* all_ranks() { return all_ranks_.get(); }
  /// Where a copy of the state that this rank writes lies, in the host's memory; null where the run has none.
  std::byte* copy_room() { return copy_.size() > 0 ? static_cast<std::byte*>(copy_.address_of(0)) : nullptr; }
  int threads() const { return threads_; }
  /// Takes samples [first_sample, first_sample + batch) of the corpus: of these this rank's micro-batches.
  StepInput& load_batch(Corpus& corpus, std::int64_t first_sample) {
    return inputs_->load(corpus, first_sample);
  }
  /// Takes what this rank needs of a subnet's batch, which is the corpus's samples from subnet x batch on.
  void load_subnet(Corpus& corpus, const Subnet& subnet, StepInput& input);
  /// The targets that count of a subnet's whole batch, which another lane runs.
  std::int64_t targets_of_subnet(Corpus& corpus, std::int64_t subnet) {
    return inputs_->count_whole(corpus, subnet * layout_.batch);
  }
  /// Makes what trains subnets, which are fed so. Collective.
  void train_subnets(SubnetTrainer::Feed feed);

 private:
  std::unique_ptr<Group> group_along(Axis axis, Transports::Use use, const char* name);
  std::unique_ptr<Communicator> make_group(Axis axis, int logical, Transports::Use use);
  void connect_stages();
  void make_stage();
  void keep_units(Groups groups);
  void make_executor();
  RankState state_of_rank() { return {*stage_, *residency_, *updates_, windows_.get()}; }
  void run_forwards(const ForwardStream::Tasks& tasks);
  /// Batches on which each network of a supernet with batch norms is calibrated, on every data rank alike:
  /// the parts of all data ranks, of the first batches of what is trained on.
  std::int64_t calibrations() const;
  /// What a task's batches are: those of a corpus by their numbers, from `end` on calibrations.
  StepInput& hold(Corpus& corpus, std::int64_t batch, std::int64_t end);

  Config config_;
  RunPlan plan_;
  World world_;
  Memory memory_;
  int threads_;
  std::unique_ptr<Backend> backend_;
  std::optional<Memory>
      pinned_;  ///< where the host may not read the backend's memory: what messages pass through
  std::optional<Staging> staging_;
  Waiting waiting_;
  Watchdog* watchdog_;
  DeviceTransports carrier_;
  TrafficLedger ledger_;
  Layout layout_;
  std::optional<ProcessGrid> grid_;
  std::unique_ptr<Communicator> tensor_, data_, pipeline_, lanes_;
  std::unique_ptr<Channels> channels_;
  std::unique_ptr<Reductions> reductions_;
  std::unique_ptr<Stage> stage_;
  std::unique_ptr<Residency> residency_;
  std::unique_ptr<GradientUpdates> updates_;
  std::unique_ptr<SharedWindows> windows_;
  std::unique_ptr<Executor> executor_;
  std::optional<Script> training_;
  std::unique_ptr<Agreement> agreement_;
  std::unique_ptr<ForwardStream> forwards_;
  std::unique_ptr<Channels> reports_;
  std::unique_ptr<SubnetTrainer> subnets_;
  std::unique_ptr<ModelState> state_;
  std::unique_ptr<Group> all_ranks_;
  Arena copy_;
  std::unique_ptr<BatchInputs> inputs_;
  std::vector<Subnet> evaluated_;      ///< of a supernet: what its evaluations ask
  std::optional<Corpus> calibration_;  ///< of a supernet with batch norms: what they are calibrated on
};

}  // namespace mindpipe
