#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/network_on_paper.h"
#include "plan/port_costs.h"
#include "plan/run_plan.h"
#include "runtime/small_models.h"

namespace mindpipe {
namespace {

/// Four ranks to a node; 1 GB/s at once within, 100 MB/s after 50 us between.
Config on_nodes_of_four(const GridConfig& grid) {
  Config c = gpt2_style();
  c.grid = grid;
  c.train.batch = 16 * grid.data;
  c.train.micro_batch = 2;
  c.model.gpt.layers = 8;
  c.device.links = {4, 1e-6, 1e9, 50e-6, 1e8};
  return resolve(c);
}

bool is_within(const Link& link) {
  EXPECT_EQ(link.level, link.latency == 1000 ? Level::node : Level::net);
  return link.latency == 1000;
}
Link between(const Network& network, int from, int to) {
  const auto found = network.between.find({from, to});
  return found == network.between.end() ? network.message : found->second;
}

TEST(NetworkOnPaper, GroupsThatFillANodeStayWithinIt) {
  const Network one = network_on_paper(on_nodes_of_four({1, 1, 2, 2}));
  for (const Link& link : {one.tensor, one.data, one.grid, one.message}) EXPECT_TRUE(is_within(link));
  EXPECT_EQ(one.tensor.time(1'000'000), 1000 + 1'000'000);
  const Network two = network_on_paper(on_nodes_of_four({1, 2, 2, 2}));
  EXPECT_TRUE(is_within(two.tensor));
  EXPECT_TRUE(is_within(two.data));
  EXPECT_FALSE(is_within(two.grid));
  EXPECT_FALSE(is_within(between(two, 0, 1)));
  EXPECT_EQ(two.grid.time(1'000'000), 50'000 + 10'000'000);
  const Network wide = network_on_paper(on_nodes_of_four({1, 1, 4, 2}));
  EXPECT_TRUE(is_within(wide.tensor));
  EXPECT_FALSE(is_within(wide.data));
}

TEST(NetworkOnPaper, StagesOfOneNodeAreNeighbours) {
  const Network network = network_on_paper(on_nodes_of_four({1, 6, 2, 1}));  // two stages to a node
  for (int from = 0; from < 6; ++from)
    for (int to = 0; to < 6; ++to)
      if (from != to) {
        EXPECT_EQ(is_within(between(network, from, to)), from / 2 == to / 2) << from << " to " << to;
      }
  const Network uneven =
      network_on_paper(on_nodes_of_four({1, 4, 3, 1}));  // a stage of three, the second one on two nodes
  EXPECT_FALSE(is_within(between(uneven, 0, 1)));
  EXPECT_FALSE(is_within(uneven.data));
}

TEST(NetworkOnPaper, PartsMayBeLongerWhereADevicesQueuesCarryThem) {
  const auto longest = [](DeviceKind kind, TransportKind transport) {
    Config c = on_nodes_of_four({1, 1, 2, 1});
    c.device.kind = kind;
    c.device.transport = transport;
    return network_on_paper(c).longest_part;
  };
  for (const TransportKind transport : {TransportKind::automatic, TransportKind::nccl})
    EXPECT_EQ(longest(DeviceKind::cuda, transport), most_queued_part_bytes);
  EXPECT_EQ(longest(DeviceKind::cuda, TransportKind::mpi), most_part_bytes);
  EXPECT_EQ(longest(DeviceKind::cpu, TransportKind::automatic), most_part_bytes);
}

TEST(NetworkOnPaper, WhatLinksLeaveOutTheDeviceSays) {
  Config c = gpt2_style();
  const LinkDescription core = links_on_paper(c);
  c.device.links.rate = 5e9;
  EXPECT_EQ(links_on_paper(c).bytes, 5e9);
  EXPECT_EQ(links_on_paper(c).latency, core.latency);
  EXPECT_EQ(links_on_paper(c).bytes_between_nodes, core.bytes_between_nodes);
  c.device.description = "h200";
  EXPECT_EQ(links_on_paper(c).ranks_per_node, 8);
}

/// Two stages of two data ranks to a node: sums stay in it, and messages between nodes never meet them.
TEST(NetworkOnPaper, SumsWithinANodeDoNotHoldUpMessagesBetweenNodes) {
  Config c = on_nodes_of_four({1, 4, 2, 1});
  c.device.links = {2, 2e-6, 2e7, 2e-6, 2e7};
  const auto waited_for_sums = [](const Config& config) {
    const PortCosts costs = port_costs_of(make_run_plan(config), config);
    std::int64_t waited = 0;
    for (const PairCost& pair : costs.pairs)
      if (pair.waits == TrafficClass::pipeline && pair.holds == TrafficClass::gradients)
        waited += pair.waited;
    return waited;
  };
  EXPECT_EQ(waited_for_sums(c), 0);
  c.device.links.ranks_per_node = 8;
  EXPECT_GT(waited_for_sums(c), 0);
}

TEST(NetworkOnPaper, AStepOnSlowLinksTakesLonger) {
  const auto step = [](Config c, double rate) {
    c.device.links.rate_between_nodes = rate;
    return make_run_plan(c).training.expected.step;
  };
  for (const GridConfig& grid : {GridConfig{1, 8, 1, 1}, {1, 1, 8, 1}, {1, 1, 2, 4}}) {
    const Config c = on_nodes_of_four(grid);
    EXPECT_GT(step(c, 1e6), 2 * step(c, 1e8)) << grid.pipeline << ' ' << grid.data << ' ' << grid.tensor;
    EXPECT_EQ(step(on_nodes_of_four({1, 2, 2, 1}), 1e6), step(on_nodes_of_four({1, 2, 2, 1}), 1e8))
        << "one node";
  }
}

}  // namespace
}  // namespace mindpipe
