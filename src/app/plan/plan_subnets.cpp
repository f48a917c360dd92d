#include "app/plan/plan_subnets.h"

#include <algorithm>

#include "app/plan/dry_run.h"
#include "app/plan/plan.h"
#include "app/plan/plan_lanes.h"
#include "app/plan/plan_ports.h"
#include "app/train/report_end.h"
#include "config/config.h"
#include "config/models/prices.h"
#include "core/text.h"
#include "plan/network_on_paper.h"
#include "program/causal/causal_planner.h"
#include "supernet/sampler.h"

namespace mindpipe {
namespace {

double percent_more(std::int64_t time, std::int64_t best) {
  return best == 0 ? 0 : 100 * (static_cast<double>(time) / static_cast<double>(best) - 1);
}

/// "F0 F1 F3 B0 ..." of each stage: micro-batches of a subnet that follow each other count once.
std::string order_of_subnets(const Config& config, const RunPlan& plan) {
  constexpr int most = 20;
  const int ranks = plan.outline.ranks();
  const Coord grid = make_layout(config, {}).grid;
  std::vector<std::string> lines(ranks), newest(ranks);
  std::vector<int> passes(ranks, 0);
  CausalPlanner planner(plan.outline, network_on_paper(config), plan.subnets->paper.rules);
  planner.next(first_subnets(config), true, [&](const Task& task) {
    if (task.kind != TaskKind::forward && task.kind != TaskKind::backward) return;
    const std::string name =
        fmt::format("{}{}", task.kind == TaskKind::forward ? 'F' : 'B', task.owner.number);
    if (name == newest[task.rank]) return;
    newest[task.rank] = name;
    if (++passes[task.rank] <= most) lines[task.rank] += " " + name;
  });
  std::string text =
      fmt::format("\nthe first passes of each stage{}, F and B forward and backward of a subnet\n",
                  plan.outline.lanes == 1 ? "" : " of each lane (lane.stage)");
  for (int rank = 0; rank < ranks; ++rank) {
    text += fmt::format("{:<6}{}{}\n", name_of_program_rank(grid, rank), lines[rank],
                        passes[rank] > most ? " ..." : "");
  }
  return text;
}

std::string stages_of_subnets(const RunPlan& plan) {
  const Outline& outline = plan.outline;
  const RoomsOnPaper& paper = plan.subnets->paper;
  const std::size_t width = width_of_blocks(outline);
  std::string text = fmt::format("{:<6} {:<{}}    idle  owners   rooms  slots  slabs{}\n", "stage", "blocks",
                                 width, memory_head());
  for (int rank = 0; rank < outline.stages; ++rank) {
    const SubnetRooms& rooms = plan.subnets->rooms[rank];
    const auto of_all = [&](std::int64_t time) {
      return 100 * static_cast<double>(time) / static_cast<double>(paper.time);
    };
    const auto idle_for = [&](WaitReason reason) {
      return of_all(paper.idle[rank][static_cast<int>(reason)]);
    };
    text += fmt::format("{:<6} {:<{}} {:>6.1f}% {:>6.1f}% {:>6.1f}% {:>6} {:>6}{}\n", rank,
                        blocks_of_stage(outline, rank), width, 100 - of_all(paper.busy[rank]),
                        idle_for(WaitReason::owner), idle_for(WaitReason::room), rooms.slots, rooms.slabs,
                        memory_row(plan.most_memory(rank)));
  }
  const auto largest = [&](auto member) {
    std::size_t most = 0;
    for (const SubnetRooms& rooms : plan.subnets->rooms) most = std::max(most, member(rooms));
    return human_bytes(static_cast<double>(most));
  };
  return text +
         fmt::format(
             "idle{}, of it because an older subnet has yet to update a unit (owners), or for want of a "
             "slot, a slab, a place in flight or a version (rooms)\n"
             "a slot holds what one micro-batch in flight keeps (up to {} and a gradient of {}), a slab the "
             "gradients of one subnet's units (up to {})\n",
             outline.lanes > 1 ? " (of lane 0; other lanes are alike)" : "",
             largest([](const SubnetRooms& rooms) { return rooms.tape; }),
             largest([](const SubnetRooms& rooms) { return rooms.gradient; }),
             largest([](const SubnetRooms& rooms) { return rooms.slab; }));
}

std::string costs_of_rooms(const Config& config, const RoomsOnPaper& paper) {
  std::string text = fmt::format(
      "rooms: {} in flight at most ({}), {} ({}): {:.1f} % longer than with rooms for all\n",
      paper.rules.admission == 1 ? "1 subnet" : fmt::format("{} subnets", paper.rules.admission),
      config.supernet.admission > 0 ? "supernet.admission" : "supernet.admission: auto",
      "slots and slabs as above", config.supernet.slots > 0 ? "supernet.slots" : "supernet.slots: auto",
      std::max(0.0, percent_more(paper.time, paper.with_all)));
  return text + cost_of_window(paper) + "\n";
}

}  // namespace

std::string text_of_prices(const Config& config) {
  const std::string& prices = config.supernet.prices;
  if (!prices.empty() && prices != "paper") return "supernet.prices, " + prices;
  return fmt::format("the device {} (device.description)", device_name(config));
}

std::string stages_left_out(const Config& config) {
  const auto prices = prices_of(config);
  if (!prices || prices->stages.empty() || std::ssize(prices->stages) == config.grid.pipeline) return "";
  return fmt::format("{}: stages tells how slow each of {} stages is, and there are {}: all count as alike",
                     config.supernet.prices, prices->stages.size(), config.grid.pipeline);
}

std::string cost_of_window(const RoomsOnPaper& paper) {
  const double waits = std::max(0.0, percent_more(paper.time, paper.without_window));
  std::string text = fmt::format(
      "window: what all subnets share is updated once in {} subnets (supernet.window), {:.1f} % of the time "
      "is waited for it",
      paper.rules.window, waits);
  if (paper.free_window > paper.rules.window)
    text += fmt::format("; with {} hardly any would be, but fewer, larger updates learn more slowly",
                        paper.free_window);
  return text;
}

std::string rooms_text(const Config& config, const RunPlan& plan) {
  return "\n" + stages_of_subnets(plan) + costs_of_rooms(config, plan.subnets->paper);
}

std::string subnets_text(const Config& config, const RunPlan& plan, int ranks, PortChanges* changes) {
  const Outline& outline = plan.outline;
  const RoomsOnPaper& paper = plan.subnets->paper;
  const double counted = static_cast<double>(config.train.batch * plan.counted.of_sample),
               each = paper.seconds_each();
  std::string text = fmt::format(
      "{}: {} parameters, {} rank{} ({}), schedule {}, sampler {}, {} micro-batch{} of a subnet a rank\n",
      config.model.kind, plan.parameters, ranks, ranks == 1 ? "" : "s",
      to_string(make_layout(config, {}).grid), config.schedule.kind, config.supernet.sampler,
      outline.micro_batches, outline.micro_batches == 1 ? "" : "es");
  text += fmt::format(
      "the first {} subnets on paper, priced by {}: one every {}, {} {}s/s, {}\n{}", paper.subnets,
      text_of_prices(config), human_seconds(each), human_count(counted / each), plan.counted.what,
      outline.ranks() == 1 ? "one stage" : fmt::format("{:.2f} times as fast as one stage", paper.speed_up()),
      links_text(config, ranks));
  const std::string stages = stages_left_out(config);
  if (!stages.empty()) text += stages + "\n";
  text += rooms_text(config, plan) + moves_text(config, plan).text + roots_text(config, plan) +
          undivided_text(config) + attention_text(config, plan);
  return text + (changes != nullptr
                     ? ports_text(config, port_costs_of(plan, config), changes) + lanes_text(config, ranks)
                     : order_of_subnets(config, plan));
}

}  // namespace mindpipe
