#include "plan/moves_on_paper.h"

#include "config/config.h"
#include "plan/network_on_paper.h"
#include "program/choice_parts.h"
#include "program/clock/prices.h"
#include "supernet/sampler.h"

namespace mindpipe {
namespace {

/// The part of the time that moves cost with these rules.
double lost(const Outline& outline, const Network& network, const SubnetRules& rules,
            std::span<const Subnet> subnets, std::int64_t time) {
  Outline at_once = outline;
  for (UnitCost& unit : at_once.units) unit.move = 0;
  const std::int64_t without = simulate_rooms(at_once, network, rules, subnets).time;
  return std::max(0.0, 1 - static_cast<double>(without) / static_cast<double>(time));
}

/// The part of the bytes that units of these subnets have which came from another rank.
double moved_part(const RunPlan& plan, std::span<const Subnet> subnets) {
  const Outline& outline = plan.outline;
  std::int64_t used = 0;
  for (const Subnet& subnet : subnets)
    for (int block = 0; block < outline.all_blocks(); ++block)
      for_candidates(outline, subnet.choice, block, [&](int candidate) {
        for (const int unit : outline.units_used[block][candidate])
          if (!outline.units[unit].shared) used += outline.units[unit].moved;
      });
  return used == 0 ? 0 : static_cast<double>(plan.subnets->paper.moved) / static_cast<double>(used);
}

}  // namespace

double move_ratio(const Outline& outline, const Network& network) {
  const PriceList prices(outline, network);
  double moves = 0, passes = 0;
  for (int stage = 0; stage < outline.stages; ++stage) {
    // To the next lane, or to the neighbour whose cut a subnet may have.
    const int to = outline.lanes > 1 ? stage + outline.stages : stage > 0 ? stage - 1 : 1;
    for (int block = outline.first_block[stage]; block < outline.first_block[stage + 1]; ++block)
      for (const BlockPart& part : choice_parts(outline, block))
        for (int candidate = part.first; candidate < part.first + part.count; ++candidate) {
          for (const ActionKind pass : {ActionKind::forward, ActionKind::backward}) {
            PassWork work;
            work.add(outline.cost(block, candidate), traits_of_pass(pass));
            passes += static_cast<double>(outline.micro_batches * prices.pass(stage, work, false).lasts) /
                      part.count;
          }
          for (const int unit : outline.units_used[block][candidate])
            if (!outline.units[unit].shared)
              moves += static_cast<double>(prices.move(stage, to, {&unit, 1}).load.takes) / part.count;
        }
  }
  return passes == 0 ? 0 : moves / passes;
}

double lost_to_moves(const Config& config, const RunPlan& plan) {
  if (!plan.outline.has_moves()) return 0;
  const RoomsOnPaper& paper = plan.subnets->paper;
  return lost(plan.outline, network_on_paper(config), paper.rules, first_subnets(config), paper.time);
}

MovesOnPaper moves_on_paper(const Config& config, const RunPlan& plan) {
  const Network network = network_on_paper(config);
  const std::vector<Subnet> subnets = first_subnets(config);
  // What it is compared with has rooms of its own: those of several lanes would hold one of them back.
  const auto over = [&](const Outline& other) {
    return static_cast<double>(choose_rooms(other, network, wishes_of(config), subnets).time) /
           static_cast<double>(plan.subnets->paper.time);
  };
  MovesOnPaper found{.ratio = move_ratio(plan.outline, network),
                     .elsewhere = moved_part(plan, subnets),
                     .lost = lost_to_moves(config, plan)};
  Outline one_lane = plan.outline, one_cut = plan.outline;
  one_lane.lanes = 1;
  one_cut.own_cuts = false;
  if (plan.outline.lanes > 1) found.over_one_lane = over(one_lane);
  if (plan.outline.own_cuts) found.over_one_cut = over(one_cut);
  return found;
}

int batch_that_hides_moves(const Config& config, const RunPlan& plan) {
  const Network network = network_on_paper(config);
  const std::vector<Subnet> subnets = first_subnets(config);
  const int shards = make_layout(config, {}).data_shards, each = shards * config.train.micro_batch;
  SubnetRules rules = plan.subnets->paper.rules;
  rules.slots = rules.slabs = {};
  rules.admission = std::max(rules.admission, 2 * plan.outline.ranks());
  const auto hides = [&](int batch) {
    Outline outline = plan.outline;
    outline.micro_batches = plan.outline.micro_batches * (batch / each) / (config.train.batch / each);
    const std::int64_t time = simulate_rooms(outline, network, rules, subnets).time;
    return lost(outline, network, rules, subnets, time) <= 0.75 * MovesOnPaper::hidden;
  };
  int least = config.train.batch / each + 1, most = 8 * (config.train.batch / each);
  if (!hides(most * each)) return 0;
  while (least < most) {
    const int middle = least + (most - least) / 2;
    if (hides(middle * each)) most = middle;
    else least = middle + 1;
  }
  return most * each;
}

}  // namespace mindpipe
