#include "runtime/wiring.h"

#include <algorithm>
#include <set>

#include <fmt/ranges.h>
#include "comm/group.h"
#include "comm/part_length.h"
#include "comm/watchdog.h"
#include "config/config.h"
#include "program/lists/stretch_channels.h"

namespace mindpipe {

DeviceTransports make_transports(const Config& config, const World& world, Backend& backend,
                                 Waiting& waiting) {
  return device_transports(world, backend, waiting, config.device);
}

Wiring::Wiring(const Config& config, const World& world, const RunPlan& plan, Backend& backend,
               const MakeTransports& connect, Watchdog* watchdog)
    : watchdog_(watchdog) {
  waiting.set_watchdog(watchdog);
  const Memory::Kind memory = backend.memory().kind();
  if (!backend.host_may_read()) {
    pinned.emplace(memory == Memory::Kind::device ? Memory::Kind::pinned : Memory::Kind::host);
    staging.emplace(backend, *pinned);
    waiting.set_staging(&*staging);
  }
  const Coord shape = degrees_of(config.grid);
  require_one_part_length(world, plan.outline.part_bytes);
  if (world.size > 1) grid.emplace(world.comm, shape);
  if (memory == Memory::Kind::counted) {
    constexpr int longest_us = 50;  // each should see it come what one stage after the other waits for
    waiting.set_patience(50, std::max(longest_us, longest_us * world.size / 16));
  }
  layout = make_layout(config, grid ? grid->coord() : Coord{});
  carrier = connect(config, world, backend, waiting);
  if (carrier.transports != nullptr && watchdog != nullptr)
    watchdog->ask([this] { return carrier.transports->trouble(); });
  const auto make = [&](Axis axis, int logical, Transports::Use use) {
    groups_[static_cast<std::size_t>(axis)] = make_group(backend, axis, logical, use);
  };
  make(Axis::tensor, layout.tensor_shards, Transports::Use::sums);
  make(Axis::data, layout.data_shards, Transports::Use::scalars);
  make(Axis::pipeline, shape.pipeline, Transports::Use::scalars);
  make(Axis::supernet, shape.supernet, Transports::Use::scalars);
  if (memory == Memory::Kind::counted && world.size > 1 && carrier.transports == nullptr)
    imitate_links(plan.network);
  if (shape.pipeline * shape.supernet > 1) {
    Route route = route_of(backend.memory(), waiting);
    route.ports = ports ? &*ports : nullptr;
    connect_stages(plan, route);
  }
  reductions = shape.data > 1 ? std::make_unique<Reductions>(
                                    backend, group_along(Axis::data, Transports::Use::bulk, "gradient sums"),
                                    Axis::data, &ledger, layout.data_shards, plan.outline.part_bytes)
                              : std::make_unique<Reductions>(backend);
  if (ports && shape.data > 1) reductions->pass(*ports);
  agreement = std::make_unique<Agreement>(world, waiting);
  if (world.size > 1) all_ranks = std::make_unique<Group>(world.comm, waiting);
}

Wiring::~Wiring() {
  if (watchdog_ != nullptr) watchdog_->ask(nullptr);
}

std::unique_ptr<Group> Wiring::group_along(Axis axis, Transports::Use use, const char* name) {
  auto group = std::make_unique<Group>(grid->along(axis), waiting);
  if (carrier.transports != nullptr)
    group->use(carrier.transports->among(
        grid->along(axis), use,
        fmt::format("{} of the ranks {}", name, fmt::join(world_ranks(grid->along(axis)), ", "))));
  return group;
}

std::unique_ptr<Communicator> Wiring::make_group(Backend& backend, Axis axis, int logical,
                                                 Transports::Use use) {
  if (!grid || grid->shape()[axis] == 1) return std::make_unique<Communicator>(backend, logical);
  const std::string name = fmt::format("{} sums", name_of(axis));
  return std::make_unique<Communicator>(backend, group_along(axis, use, name.c_str()), logical, axis,
                                        &ledger);
}

/// Messages and sums pass ports on links as plans see them.
void Wiring::imitate_links(const Network& network) {
  const int stages = grid->shape().pipeline, here = layout.coord.supernet * stages + layout.coord.pipeline;
  std::vector<Link> links;
  for (int rank = 0; rank < stages * grid->shape().supernet; ++rank)
    links.push_back(network.link(here, rank));
  ports.emplace();
  ports->connect(std::move(links), network.data);
}

/// Every channel that the programs name gets a transport before the first step, those of the queue bulk
/// together.
void Wiring::connect_stages(const RunPlan& plan, Route route) {
  const int stages = grid->shape().pipeline;
  channels =
      std::make_unique<Channels>(grid->program(), waiting, &ledger, route, stages, plan.outline.part_bytes);
  if (plan.subnets) reports = std::make_unique<Channels>(grid->program(), waiting, &ledger, Route{}, stages);
  if (carrier.transports == nullptr) return;
  std::set<ChannelName> own, in_bulk;
  const auto name = [&](int from, int to, Payload payload) {
    (travels_in_bulk(payload) ? in_bulk : own).insert({from, to, static_cast<int>(payload)});
  };
  for (const Program* program : {&plan.training.program, &plan.evaluation.program})
    for (int rank = 0; rank < static_cast<int>(program->ranks.size()); ++rank)
      for (const Action& action : program->ranks[rank])
        if (action.kind == ActionKind::send) name(rank, action.peer, action.payload);
  std::vector<StretchChannel> later;
  if (plan.subnets) later = channels_of_stretches(plan.outline);
  else if (plan.blocks_may_move) later = channels_of_moving_steps(plan.outline);
  for (const StretchChannel& channel : later) name(channel.from, channel.to, channel.payload);
  channels->use(*carrier.transports, {own.begin(), own.end()}, {in_bulk.begin(), in_bulk.end()});
}

void Wiring::reserve(const RankFootprint& footprint) {
  group(Axis::tensor).reserve(footprint.passes.exchange);
  group(Axis::data).reserve(footprint.scalars.data_exchange);
  group(Axis::pipeline).reserve(footprint.scalars.pipeline_exchange);
  reductions->reserve(footprint.reduction[layout.coord.data]);
}

void Wiring::sum_over_grid(std::vector<std::int64_t>& values, TrafficClass kind) {
  for (const std::unique_ptr<Communicator>& group : groups_) group->sum_integers(values, kind);
}

}  // namespace mindpipe
