#include "runtime/worker.h"

#include <algorithm>
#include <utility>

#include "config/config.h"
#include "config/models/prices.h"
#include "hardware.h"
#include "make_backend.h"
#include "plan/memory_limits.h"

namespace mindpipe {
namespace {

/// The plans of a run, refused before anything is allocated.
PlansByCut fitting(RunPlan plan, const Config& config) {
  require_within(plan, config);
  std::vector<PlannedMove> moves = plan_moves(config, plan);
  return {std::move(plan), std::move(moves)};
}

/// The memory of the host that a device copies to and from at full speed.
Memory::Kind host_memory_of(Memory::Kind device) {
  return device == Memory::Kind::device ? Memory::Kind::pinned : device;
}

/// The most numbers that a rank of a plan asks of its device at once: a step's decision, and squares of its
/// data shards; losses and hits of a batch; decisions of a subnet's units, and its losses.
std::int64_t most_numbers(const Config& config, const RunPlan& plan, const Layout& layout) {
  const std::int64_t units =
      plan.subnets ? std::max<std::int64_t>(1, plan.subnets->rooms[layout.coord.pipeline].most_tensors) : 1;
  const std::int64_t squares = config.train.noise_every > 0 ? layout.data_shards : 0;
  return std::max<std::int64_t>(Decision::places * units + 1 + squares,
                                layout.local_data_shards() + Hits::places);
}

}  // namespace

std::unique_ptr<Backend> make_backend(const Config& config, Memory& memory, int threads, const World& world) {
  switch (config.device.kind) {
    case DeviceKind::cpu:
      return make_cpu_backend(memory, threads, config.device.instructions);
    case DeviceKind::cuda:
      return make_cuda_backend(memory, local_rank(world) % std::max(1, gpu_count()), config.device.kernels,
                               attention_limit(config), config.device.reserved_multiprocessors);
    case DeviceKind::emulated:
      // The executor lets passes last as planned: what they consist of takes no time.
      return make_pricing_backend(memory, description_of(config));
  }
  fail(Exit::internal, "a device of no kind");
}

Worker::Worker(const Config& config, const World& world, RunPlan plan, const MakeBackend& make,
               const MakeTransports& connect, Watchdog* watchdog)
    : config_(std::make_unique<const Config>(config)),
      plans_(fitting(std::move(plan), config)),
      plan_(plans_.present()),
      world_(world),
      memory_(row_of(config.device.kind).memory, static_cast<std::size_t>(config.memory.device_limit)),
      host_(host_memory_of(row_of(config.device.kind).memory),
            static_cast<std::size_t>(config.memory.host_limit)),
      threads_(threads_of(config.device)),
      backend_(make(config, memory_, threads_, world)),
      wiring_(config, world, plan_, *backend_, connect, watchdog) {
  make_stage();
  make_executor();
  make_feeds();
  make_copy_room();
  inputs_ = std::make_unique<BatchInputs>(*stage_, plan_.fields, plan_.held_batches, plan_.blocks_may_move);
  make_evaluation();
}

Worker::~Worker() = default;

void Worker::make_copy_room() {
  const auto copied =
      static_cast<std::size_t>(plan_.memory_of(layout().coord)[static_cast<int>(MemoryClass::copy)]);
  if (copy_.size() == aligned(copied)) return;
  copy_ = Arena();
  copy_ = Arena(wiring_.pinned ? *wiring_.pinned : memory_, MemoryClass::copy, copied);
}

void Worker::make_evaluation() {
  evaluator_.reset();
  if (forwards_) executor_->end(forwards_->script());
  forwards_.reset();
  forwards_ = std::make_unique<ForwardFeed>(*executor_, state_of_rank(), plan_, *answers_, wiring_);
  evaluator_ =
      std::make_unique<Evaluator>(config(), plan_, *stage_, *executor_, *inputs_, *forwards_, steps_.get());
}

void Worker::make_stage() {
  const int here = layout().coord.pipeline;
  const LayerContext context{*backend_,
                             group(Axis::tensor),
                             compute_dtype(config().train),
                             config().train.sequence_parallel,
                             config().seed,
                             backend_->wants_many_rows()};
  stage_ = std::make_unique<Stage>(config(), layout(), context, plan_.ranges_of(here), plan_.reach_of(here));
  stage_->allocate_statistics(plan_.ranges_of(here));
  keep_units();
  reserve();
}

void Worker::reserve() {
  const RankFootprint& footprint = plan_.footprints[layout().coord.pipeline];
  updates_->folds().reserve(footprint.passes.zeros);
  wiring_.reserve(footprint);
  backend_->reserve(footprint.passes.backend);
}

void Worker::keep_units() {
  const int here = layout().coord.pipeline;
  const Groups groups = wiring_.groups();
  residency_ = std::make_unique<Residency>(*stage_, config().train, config().optimizer, groups);
  updates_ = std::make_unique<GradientUpdates>(*stage_, *residency_, config().train, config().optimizer,
                                               config().device.kind, groups);
  if (plan_.purpose == Purpose::reading) {
    residency_->allocate({});
    updates_->allocate_for_reading();
  } else if (plan_.trains_steps()) {
    residency_->allocate({.keeps = ResidencyPlan::steps,
                          .placed = &plan_.training.placement.ranks[here],
                          .host = plan_.outline.state_on_host ? &host_ : nullptr});
    residency_->readers().know_steps(plan_.outline.uses_in(0, plan_.outline.all_blocks()));
    updates_->allocate_for_steps();
  } else {
    const SubnetRooms& rooms = plan_.subnets->rooms[here];
    residency_->allocate({.keeps = ResidencyPlan::subnets,
                          .slabs = rooms.slabs,
                          .slab = rooms.slab,
                          .ways = rooms.moves,
                          .way = rooms.move,
                          .window = config().supernet.window,
                          .in_order = order_of(config().schedule.kind) == SubnetOrder::causal,
                          .own_cuts = config().supernet.cuts == SubnetCuts::own});
    updates_->allocate_for_subnets(rooms.most_tensors);
    windows_ = std::make_unique<SharedWindows>(*stage_, *residency_, *updates_, groups, config().supernet,
                                               config().train, config().optimizer.rate, plan_.outline);
  }
}

WorkMemory Worker::work_memory() {
  const RankFootprint& footprint = plan_.footprints[layout().coord.pipeline];
  WorkMemory memory{.passes = {.slots = footprint.slots,
                               .slab = footprint.slab,
                               .buffers = footprint.buffers,
                               .host = &host_},
                    .scratch = footprint.passes.scratch};
  if (plan_.subnets) {
    const SubnetRooms& rooms = plan_.subnets->rooms[layout().coord.pipeline];
    PassMemory& subnets = memory.subnets.emplace();
    subnets.slots = rooms.slots;
    subnets.tape = rooms.tape;
    subnets.gradient = rooms.gradient;
    subnets.buffers = {rooms.forwards, rooms.forwards, rooms.backwards, rooms.backwards};
    subnets.batches = stage_->has_head() ? rooms.inputs : 0;
  }
  return memory;
}

void Worker::make_executor() {
  const bool queued =
      wiring_.carrier.transports != nullptr || (!backend_->host_may_read() && world_.size == 1);
  executor_ = std::make_unique<Executor>(state_of_rank(),
                                         Wires{wiring_.channels.get(), *wiring_.reductions, waiting(),
                                               wiring_.ports ? &*wiring_.ports : nullptr, &plan_.network},
                                         work_memory(), queued);
  make_state();
  if (plan_.purpose == Purpose::training) state_->initialize(threads_);
}

void Worker::make_state() {
  state_ = std::make_unique<ModelState>(config().seed, *stage_, *residency_, wiring_.groups(),
                                        executor_->actions().scratch(), plan_.passing);
}

void Worker::make_feeds() {
  answers_ = std::make_unique<LateAnswers>(*backend_, waiting(), wiring_.pinned ? &*wiring_.pinned : nullptr,
                                           most_numbers(config(), plan_, layout()));
  if (plan_.trains_steps())
    steps_ = std::make_unique<StepFeed>(*executor_, state_of_rank(), config().train, config().trace, plan_,
                                        *answers_);
  if (plan_.subnets)
    subnets_ = std::make_unique<SubnetFeed>(*executor_, state_of_rank(), config().supernet, config().train,
                                            config().trace, plan_, *answers_, wiring_);
}

std::optional<StepScalars> Worker::step(Corpus& corpus, std::int64_t step, std::int64_t first_sample,
                                        double rate) {
  MP_CHECK(steps_ != nullptr, "a worker that does not train steps has no memory for one");
  StepInput& input = inputs_->load(corpus, first_sample);
  input.step = step;
  input.rate = rate;
  // What messages pass through grows to what they need; where there are none, nothing is pinned either.
  std::optional<Memory::Closed> also_pinned;
  if (wiring_.pinned && world_.size == 1) also_pinned.emplace(*wiring_.pinned);
  return run(input);
}

std::optional<StepScalars> Worker::run(const StepInput& input) {
  if (plans_.move_behind(input.step) == nullptr) return steps_->run(input);
  if (before_move) before_move();
  plans_.begin_move(input.step);
  residency_->await(plan_.training.program.ranks[layout().coord.pipeline]);
  steps_->take(plan_);
  const std::optional<StepScalars> known = steps_->run(input);
  plans_.end_move();
  take_cut();
  return known;
}

void Worker::go_to(std::int64_t done) {
  if (plans_.go_to(done)) take_cut();
}

/// Makes all anew that follows from the blocks which are here. The device has come to an end: what is given
/// back is not read any more.
void Worker::take_cut() {
  backend_->synchronize();
  executor_->actions().leave_rooms();
  const int here = layout().coord.pipeline;
  stage_->take(plan_.ranges_of(here));
  residency_->take_units(plan_.training.placement.ranks[here]);
  updates_->take_units();
  reserve();
  executor_->actions().take_rooms(work_memory());
  make_state();
  make_copy_room();
  steps_->take(plan_);
  make_evaluation();
}

}  // namespace mindpipe
