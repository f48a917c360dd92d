#include "plan/network_on_paper.h"

#include <algorithm>
#include <cmath>

#include "config/config.h"
#include "core/sum_tree.h"
#include "plan/cost_model.h"

namespace mindpipe {
namespace {

Link link_of(double latency, double bytes_per_second, Level level) {
  return {std::llround(latency * 1e9), 1e12 / bytes_per_second, level};
}

}  // namespace

LinkDescription links_on_paper(const Config& config) {
  const LinksConfig& said = config.device.links;
  if (said.ranks_per_node > 0 && said.latency > 0 && said.rate > 0 && said.latency_between_nodes > 0 &&
      said.rate_between_nodes > 0 && said.copies > 0)
    return {said.ranks_per_node,     said.latency, said.rate, said.latency_between_nodes,
            said.rate_between_nodes, said.copies};
  LinkDescription links = description_of(config).links;
  const auto take = [](auto given, auto& known) {
    if (given > 0) known = given;
  };
  if (!config.device.profile.empty()) {
    const Profile profile = read_profile(config.device.profile);
    take(profile.latency, links.latency);
    take(profile.rate, links.bytes);
    take(profile.latency_between_nodes, links.latency_between_nodes);
    take(profile.rate_between_nodes, links.bytes_between_nodes);
    take(profile.ranks_per_node, links.ranks_per_node);
  }
  take(said.ranks_per_node, links.ranks_per_node);
  take(said.latency, links.latency);
  take(said.rate, links.bytes);
  take(said.latency_between_nodes, links.latency_between_nodes);
  take(said.rate_between_nodes, links.bytes_between_nodes);
  take(said.copies, links.copies);
  return links;
}

Network network_on_paper(const Config& config) {
  const LinkDescription links = links_on_paper(config);
  const Link within = link_of(links.latency, links.bytes, Level::node),
             between = link_of(links.latency_between_nodes, links.bytes_between_nodes, Level::net);
  const std::int64_t tensor = config.grid.tensor, stage = config.grid.data * tensor,
                     places = config.grid.supernet * config.grid.pipeline, ranks = places * stage;
  const auto node_of = [&](std::int64_t rank) { return rank / links.ranks_per_node; };
  // Groups of `size` ranks that follow each other, the first of them at every multiple of `size`.
  const auto for_groups_of = [&](std::int64_t size) {
    bool inside = true;
    for (std::int64_t first = 0; first < ranks && inside; first += size)
      inside = node_of(first) == node_of(first + size - 1);
    return inside ? within : between;
  };
  Network network;
  if (config.device.kind == DeviceKind::cuda && config.device.transport != TransportKind::mpi)
    network.longest_part = most_queued_part_bytes;
  network.copies = link_of(0, links.copies, Level::copies);
  network.tensor = for_groups_of(tensor);
  network.data = for_groups_of(stage);
  network.grid = for_groups_of(ranks);
  // A rank sends the others' pieces of each of its roots, and unless shares stay where they are, its own
  // piece of the sum.
  const auto data = static_cast<int>(config.grid.data),
             shards = std::max(data, static_cast<int>(config.reproducible.data));
  network.calls.of_gather = std::max(1, data - 1);
  network.calls.of_sum =
      std::max(1, (data - 1) * (most_roots(shards, data) + (config.train.zero > 0 ? 0 : 1)));
  // Stages share a node where the first rank of the one and the last of the other do; else some ranks do not.
  network.message = network.grid;
  for (int from = 0; from < places && node_of(0) != node_of(ranks - 1); ++from)
    for (int to = from + 1; to < places && node_of(from * stage) == node_of((to + 1) * stage - 1); ++to)
      network.between[{from, to}] = network.between[{to, from}] = within;
  return network;
}

}  // namespace mindpipe
