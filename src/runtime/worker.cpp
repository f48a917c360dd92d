#include "runtime/worker.h"

#include <algorithm>
#include <utility>

#include "config/models/prices.h"
#include "hardware.h"
#include "make_backend.h"
#include "plan/memory_limits.h"

namespace mindpipe {
namespace {

/// Refused before anything is allocated.
RunPlan fitting(RunPlan plan, const Config& config) {
  require_fit(plan, config.memory.device_limit);
  return plan;
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
                               attention_limit(config));
    case DeviceKind::emulated:
      // The executor lets passes last as planned: what they consist of takes no time.
      return make_pricing_backend(memory, description_of(config));
  }
  fail(Exit::internal, "a device of no kind");
}

Worker::Worker(const Config& config, const World& world, RunPlan plan, const MakeBackend& make,
               const MakeTransports& connect, Watchdog* watchdog)
    : config_(config),
      plan_(fitting(std::move(plan), config)),
      world_(world),
      memory_(row_of(config.device.kind).memory, static_cast<std::size_t>(config.memory.device_limit)),
      threads_(threads_of(config)),
      backend_(make(config, memory_, threads_, world)),
      wiring_(config, world, plan_, *backend_, connect, watchdog) {
  make_stage();
  make_executor();
  make_feeds();
  if (const auto copied = plan_.memory_of(layout().coord)[static_cast<int>(MemoryClass::copy)]; copied > 0)
    copy_ = Arena(wiring_.pinned ? *wiring_.pinned : memory_, MemoryClass::copy,
                  static_cast<std::size_t>(copied));
  inputs_ = std::make_unique<BatchInputs>(*stage_, plan_.fields, plan_.held_batches);
  evaluator_ =
      std::make_unique<Evaluator>(config_, plan_, *stage_, *executor_, *inputs_, *forwards_, steps_.get());
}

void Worker::make_stage() {
  const int here = layout().coord.pipeline;
  const LayerContext context{*backend_,
                             group(Axis::tensor),
                             compute_dtype(config_),
                             config_.train.sequence_parallel,
                             config_.seed,
                             row_of(config_.device.kind).wants_many_rows};
  stage_ = std::make_unique<Stage>(config_, layout(), context, plan_.ranges_of(here), plan_.reach_of(here));
  stage_->allocate_statistics(plan_.ranges_of(here));
  keep_units();
  const RankFootprint& footprint = plan_.footprints[here];
  updates_->reserve(footprint.passes.zeros);
  wiring_.reserve(footprint);
  backend_->reserve(footprint.passes.backend);
}

void Worker::keep_units() {
  const int here = layout().coord.pipeline;
  const Groups groups = wiring_.groups();
  residency_ = std::make_unique<Residency>(*stage_, config_, groups);
  updates_ = std::make_unique<GradientUpdates>(*stage_, *residency_, config_, groups);
  if (plan_.purpose == Purpose::reading) {
    residency_->allocate({});
    updates_->allocate_for_reading();
  } else if (plan_.trains_steps()) {
    residency_->allocate({.keeps = ResidencyPlan::steps, .placed = &plan_.training.placement.ranks[here]});
    residency_->readers().know_steps(plan_.outline.uses_in(0, plan_.outline.all_blocks()));
    updates_->allocate_for_steps();
  } else {
    const SubnetRooms& rooms = plan_.subnets->rooms[here];
    residency_->allocate({.keeps = ResidencyPlan::subnets,
                          .slabs = rooms.slabs,
                          .slab = rooms.slab,
                          .ways = rooms.moves,
                          .way = rooms.move,
                          .window = config_.supernet.window,
                          .in_order = order_of(config_.schedule.kind) == SubnetOrder::causal,
                          .own_cuts = config_.supernet.cuts == SubnetCuts::own});
    updates_->allocate_for_subnets(rooms.most_tensors);
    windows_ =
        std::make_unique<SharedWindows>(*stage_, *residency_, *updates_, groups, config_, plan_.outline);
  }
}

void Worker::make_executor() {
  const RankFootprint& footprint = plan_.footprints[layout().coord.pipeline];
  const bool queued =
      wiring_.carrier.transports != nullptr || (!backend_->host_may_read() && world_.size == 1);
  WorkMemory memory{.passes = {.tapes = footprint.tapes, .buffers = footprint.buffers},
                    .scratch = footprint.passes.scratch};
  if (plan_.subnets) {
    const SubnetRooms& rooms = plan_.subnets->rooms[layout().coord.pipeline];
    memory.subnets = {.tapes = std::vector<std::size_t>(static_cast<std::size_t>(rooms.slots), rooms.tape),
                      .gradient = rooms.gradient,
                      .buffers = {rooms.forwards, rooms.forwards, rooms.backwards, rooms.backwards},
                      .batches = stage_->has_head() ? rooms.inputs : 0};
  }
  executor_ = std::make_unique<Executor>(state_of_rank(),
                                         Wires{wiring_.channels.get(), *wiring_.reductions, waiting(),
                                               wiring_.ports ? &*wiring_.ports : nullptr, &plan_.network},
                                         memory, queued);
  state_ = std::make_unique<ModelState>(config_, *stage_, *residency_, wiring_.groups(),
                                        executor_->actions().scratch(), plan_.passing);
  if (plan_.purpose == Purpose::training) state_->initialize(threads_);
}

void Worker::make_feeds() {
  answers_ = std::make_unique<LateAnswers>(*backend_, waiting(), wiring_.pinned ? &*wiring_.pinned : nullptr,
                                           most_numbers(config_, plan_, layout()));
  forwards_ = std::make_unique<ForwardFeed>(*executor_, state_of_rank(), plan_, *answers_, wiring_);
  if (plan_.trains_steps())
    steps_ = std::make_unique<StepFeed>(*executor_, state_of_rank(), config_, plan_, *answers_);
  if (plan_.subnets)
    subnets_ = std::make_unique<SubnetFeed>(*executor_, state_of_rank(), config_, plan_, *answers_, wiring_);
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
  return steps_->run(input);
}

}  // namespace mindpipe
