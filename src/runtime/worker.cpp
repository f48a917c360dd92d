#include "runtime/worker.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/ranges.h>
#include "comm/group.h"
#include "comm/watchdog.h"
#include "config/models/prices.h"
#include "hardware.h"
#include "make_backend.h"
#include "optim/rate.h"
#include "program/lists/stretch_channels.h"
#include "supernet/sampler.h"

namespace mindpipe {
namespace {

/// Refused before anything is allocated.
RunPlan fitting(RunPlan plan, const Config& config) {
  require_fit(plan, config.memory.device_limit);
  return plan;
}

}  // namespace

std::unique_ptr<Backend> make_backend(const Config& config, Memory& memory, int threads, const World& world) {
  switch (config.device.kind) {
    case DeviceKind::cpu:
      return make_cpu_backend(memory, threads, config.device.instructions);
    case DeviceKind::cuda:
      return make_cuda_backend(memory, local_rank(world) % std::max(1, gpu_count()), config.device.kernels,
                               attention_room(config));
    case DeviceKind::emulated:
      if (prices_of(config))  // the executor lets passes last: what they consist of takes no time
        return make_pricing_backend(memory, describe_device(device_on_paper(config)));
      return make_emulated_backend(memory, describe_device(device_on_paper(config)),
                                   500'000 * std::max(1, world.size / 16));
  }
  fail(Exit::internal, "a device of no kind");
}

DeviceTransports make_transports(const Config& config, const World& world, Backend& backend,
                                 Waiting& waiting) {
  return device_transports(world, backend, waiting, config.device.transport);
}

std::unique_ptr<Group> Worker::group_along(Axis axis, Transports::Use use, const char* name) {
  auto group = std::make_unique<Group>(grid_->along(axis), waiting_);
  if (carrier_.transports != nullptr)
    group->use(carrier_.transports->among(
        grid_->along(axis), use,
        fmt::format("{} of the ranks {}", name, fmt::join(world_ranks(grid_->along(axis)), ", "))));
  return group;
}

std::unique_ptr<Communicator> Worker::make_group(Axis axis, int logical, Transports::Use use) {
  if (!grid_ || grid_->shape()[axis] == 1) return std::make_unique<Communicator>(*backend_, logical);
  const std::string name = fmt::format("{} sums", name_of(axis));
  return std::make_unique<Communicator>(*backend_, group_along(axis, use, name.c_str()), logical, axis,
                                        &ledger_);
}

/// Every channel of the programs gets a transport of its own, before the first step.
void Worker::connect_stages() {
  channels_ = std::make_unique<Channels>(grid_->program(), waiting_, &ledger_, route_of(memory_, waiting_),
                                         config_.grid.pipeline);
  if (carrier_.transports == nullptr) return;
  std::set<ChannelName> names;
  for (const Program* program : {&plan_.training.program, &plan_.evaluation.program})
    for (int rank = 0; rank < static_cast<int>(program->ranks.size()); ++rank)
      for (const Action& action : program->ranks[rank])
        if (action.kind == ActionKind::send)
          names.insert({rank, action.peer, static_cast<int>(action.payload)});
  if (plan_.subnets)
    for (const StretchChannel& channel : channels_of_stretches(plan_.outline))
      names.insert({channel.from, channel.to, static_cast<int>(channel.payload)});
  channels_->use(*carrier_.transports, {names.begin(), names.end()});
}

Worker::~Worker() {
  if (watchdog_ == nullptr) return;
  watchdog_->ask(nullptr);
}

Worker::Worker(const Config& config, const World& world, RunPlan plan, const MakeBackend& make,
               const MakeTransports& connect, Watchdog* watchdog)
    : config_(config),
      plan_(fitting(std::move(plan), config)),
      world_(world),
      memory_(row_of(config.device.kind).memory, static_cast<std::size_t>(config.memory.device_limit)),
      threads_(threads_of(config)),
      backend_(make(config, memory_, threads_, world)),
      watchdog_(watchdog) {
  waiting_.set_watchdog(watchdog);
  if (!backend_->host_may_read()) {
    pinned_.emplace(memory_.kind() == Memory::Kind::device ? Memory::Kind::pinned : Memory::Kind::host);
    staging_.emplace(*backend_, *pinned_);
    waiting_.set_staging(&*staging_);
  }
  const Coord shape = degrees_of(config);
  if (world.size > 1) grid_.emplace(world.comm, shape);
  if (memory_.kind() == Memory::Kind::counted) {
    // One stage after the other may wait for a subnet: where passes are priced, each should see it come.
    const int longest_us = plan_.outline.priced ? 50 : 200;
    waiting_.set_patience(50, std::max(longest_us, longest_us * world.size / 16));
  }
  layout_ = make_layout(config, grid_ ? grid_->coord() : Coord{});
  carrier_ = connect(config, world, *backend_, waiting_);
  if (carrier_.transports != nullptr && watchdog != nullptr)
    watchdog->ask([&carrier = *carrier_.transports] { return carrier.trouble(); });
  tensor_ = make_group(Axis::tensor, layout_.tensor_shards, Transports::Use::sums);
  data_ = make_group(Axis::data, layout_.data_shards, Transports::Use::scalars);
  pipeline_ = make_group(Axis::pipeline, shape.pipeline, Transports::Use::scalars);
  lanes_ = make_group(Axis::supernet, shape.supernet, Transports::Use::scalars);
  if (shape.pipeline * shape.supernet > 1) connect_stages();
  reductions_ = shape.data > 1
                    ? std::make_unique<Reductions>(
                          *backend_, group_along(Axis::data, Transports::Use::sums, "gradient sums"),
                          Axis::data, &ledger_, layout_.data_shards)
                    : std::make_unique<Reductions>(*backend_);

  make_stage();
  make_executor();
  if (world.size > 1) all_ranks_ = std::make_unique<Group>(world.comm, waiting_);
  if (const auto copied = plan_.memory_of(layout_.coord)[static_cast<int>(MemoryClass::copy)]; copied > 0)
    copy_ = Arena(pinned_ ? *pinned_ : memory_, MemoryClass::copy, static_cast<std::size_t>(copied));
  if (row_of(config_.model.kind).trains_subnets) evaluated_ = subnets_to_evaluate(config_);
  inputs_ = std::make_unique<BatchInputs>(*stage_, plan_.fields, plan_.held_batches);
}

void Worker::make_stage() {
  const int here = layout_.coord.pipeline;
  const LayerContext context{*backend_,
                             *tensor_,
                             compute_dtype(config_),
                             config_.train.sequence_parallel,
                             config_.seed,
                             row_of(config_.device.kind).wants_many_rows};
  stage_ = std::make_unique<Stage>(config_, layout_, context, plan_.ranges_of(here), plan_.reach_of(here));
  stage_->allocate_statistics(plan_.ranges_of(here));
  const Groups groups{*tensor_, *data_, *pipeline_};
  keep_units(groups);
  const RankFootprint& footprint = plan_.footprints[here];
  updates_->reserve(footprint.passes.zeros);
  tensor_->reserve(footprint.passes.exchange);
  data_->reserve(footprint.scalars.data_exchange);
  pipeline_->reserve(footprint.scalars.pipeline_exchange);
  reductions_->reserve(footprint.reduction[layout_.coord.data]);
  backend_->reserve(footprint.passes.backend);
}

void Worker::keep_units(Groups groups) {
  const int here = layout_.coord.pipeline;
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
  const RankFootprint& footprint = plan_.footprints[layout_.coord.pipeline];
  const bool queued = carrier_.transports != nullptr || (!backend_->host_may_read() && world_.size == 1);
  WorkMemory memory{.passes = {.tapes = footprint.tapes, .buffers = footprint.buffers},
                    .scratch = footprint.passes.scratch};
  if (plan_.subnets) {
    const SubnetRooms& rooms = plan_.subnets->rooms[layout_.coord.pipeline];
    memory.subnets = {.tapes = std::vector<std::size_t>(static_cast<std::size_t>(rooms.slots), rooms.tape),
                      .gradient = rooms.gradient,
                      .buffers = {rooms.forwards, rooms.forwards, rooms.backwards, rooms.backwards},
                      .batches = stage_->has_head() ? rooms.inputs : 0};
  }
  executor_ = std::make_unique<Executor>(state_of_rank(), Wires{channels_.get(), *reductions_, waiting_},
                                         memory, queued, pinned_ ? &*pinned_ : nullptr);
  agreement_ = std::make_unique<Agreement>(world_, waiting_);
  forwards_ = std::make_unique<ForwardStream>(*executor_, *stage_, *updates_, plan_, *agreement_, waiting_,
                                              pinned_ ? &*pinned_ : nullptr);
  state_ = std::make_unique<ModelState>(config_, *stage_, *residency_, Groups{*tensor_, *data_, *pipeline_},
                                        executor_->actions().scratch(), plan_.passing);
  if (plan_.purpose == Purpose::reading) return;
  if (plan_.trains_steps())
    training_.emplace(executor_->make_script(plan_.training, plan_.outline,
                                             static_cast<std::size_t>(std::max(1, config_.trace.steps))));
  state_->initialize(threads_);
}

void Worker::train_subnets(SubnetTrainer::Feed feed) {
  if (plan_.outline.ranks() > 1)
    reports_ =
        std::make_unique<Channels>(grid_->program(), waiting_, &ledger_, Route{}, config_.grid.pipeline);
  subnets_ = std::make_unique<SubnetTrainer>(
      *executor_, state_of_rank(), config_, plan_, stage_->fields(), std::move(feed),
      SubnetWires{waiting_, *agreement_, reports_.get(), pinned_ ? &*pinned_ : nullptr});
}

void Worker::load_subnet(Corpus& corpus, const Subnet& subnet, StepInput& input) {
  // Every stage updates by itself, so every rank counts the targets of the whole batch.
  inputs_->load_whole(corpus, subnet.id * layout_.batch, input);
  input.rate = rate_at(config_.optimizer.rate, subnet.id, config_.train.steps);
}

std::optional<StepScalars> Worker::step(Corpus& corpus, std::int64_t step, std::int64_t first_sample,
                                        double rate) {
  MP_CHECK(plan_.purpose == Purpose::training, "a worker that only reads has no memory for a step");
  StepInput& input = load_batch(corpus, first_sample);
  input.step = step;
  input.rate = rate;
  const Memory::Closed closed(memory_);
  // What messages pass through grows to what they need; where there are none, nothing is pinned either.
  std::optional<Memory::Closed> also_pinned;
  if (pinned_ && world_.size == 1) also_pinned.emplace(*pinned_);
  return executor_->run(*training_, input);
}

void Worker::inspect(std::function<void(int, const Boundary&)> look) {
  stage_->after_block = std::move(look);
  StepInput input = inputs_->loaded();
  input.calibrated = calibrations() * layout_.micro_batches();  // as the last evaluation has left it
  if (evaluated_.empty()) evaluate(input);
  for (const Subnet& network : evaluated_) {
    if (calibrations() > 0 && &network != &evaluated_.back()) continue;
    input.choice = network.choice.data();
    evaluate(input);
  }
  stage_->after_block = nullptr;
}

void Worker::sum_over_grid(std::vector<std::int64_t>& values, TrafficClass kind) {
  for (Communicator* group : {tensor_.get(), data_.get(), pipeline_.get(), lanes_.get()})
    group->sum_integers(values, kind);
}

void Worker::run_forwards(const ForwardStream::Tasks& tasks) {
  if (training_) executor_->recorder(*training_);
  const Memory::Closed closed(memory_);
  forwards_->run(tasks);
  executor_->recorder(forwards_->script());
}

std::int64_t Worker::calibrations() const { return calibrations_of(config_, layout_.grid.data); }

StepInput& Worker::hold(Corpus& corpus, std::int64_t batch, std::int64_t end) {
  if (batch < end) return inputs_->hold(corpus, batch);
  if (!calibration_) calibration_.emplace(config_.data, Subset::train, plan_.fields, config_.seed);
  const int data = layout_.grid.data;
  return inputs_->hold(*calibration_, batch, (batch - end) / data, static_cast<int>((batch - end) % data));
}

/// Networks that are calibrated take all batches one after the other, others take turns with each batch.
Evaluation Worker::evaluate(Corpus& corpus, std::int64_t batches,
                            const std::function<void(std::int64_t)>& before) {
  Evaluation all;
  if (calibrations() > 0 && !evaluated_.empty()) {
    std::size_t next = 0;
    score(corpus, batches,
          {.next = [&]() -> std::optional<Subnet> {
             return next < evaluated_.size() ? std::optional(evaluated_[next++]) : std::nullopt;
           },
           .hear =
               [&](const std::vector<Evaluation>& of_batches) {
                 for (const Evaluation& of_batch : of_batches) all.add(of_batch);
               }},
          before);
    return all;
  }
  inputs_->forget();
  const auto networks = std::max<std::int64_t>(1, std::ssize(evaluated_));
  std::int64_t next = 0;
  run_forwards({.next = [&]() -> std::optional<ForwardTask> {
                  const std::int64_t batch = next / networks, network = next % networks;
                  if (batch == batches) return std::nullopt;
                  ++next;
                  if (evaluated_.empty()) return ForwardTask{.batches = {batch}};
                  return ForwardTask{evaluated_[static_cast<std::size_t>(network)].choice, {batch}};
                },
                .load = [&](std::int64_t batch) -> StepInput& { return inputs_->hold(corpus, batch); },
                .hear = [&](const std::vector<Evaluation>& found) { all.add(found.front()); },
                .before = before});
  return all;
}

Evaluation Worker::evaluate(const StepInput& input) {
  Evaluation found;
  bool is_asked = false;
  run_forwards({.next = [&]() -> std::optional<ForwardTask> {
                  if (std::exchange(is_asked, true)) return std::nullopt;
                  return ForwardTask{.batches = {0}};
                },
                .load = [&](std::int64_t) -> const StepInput& { return input; },
                .hear = [&](const std::vector<Evaluation>& heard) { found = heard.front(); }});
  return found;
}

void Worker::score(Corpus& corpus, std::int64_t batches, const ScoreStream& stream,
                   const std::function<void(std::int64_t)>& before) {
  inputs_->forget();
  std::vector<std::int64_t> all(static_cast<std::size_t>(calibrations() + batches));
  std::iota(all.begin(), all.begin() + calibrations(), batches);
  std::iota(all.begin() + calibrations(), all.end(), 0);
  run_forwards({.next = [&]() -> std::optional<ForwardTask> {
                  std::optional<Subnet> network = stream.next();
                  if (!network) return std::nullopt;
                  return ForwardTask{std::move(network->choice), all};
                },
                .lag = stream.lag,
                .batches = std::ssize(all),
                .calibrations = calibrations(),
                .load = [&](std::int64_t batch) -> StepInput& { return hold(corpus, batch, batches); },
                .hear = stream.hear,
                .wish = stream.wish,
                .before = before});
}

}  // namespace mindpipe
