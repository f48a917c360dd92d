#include "plan/port_costs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config.h"
#include "core/bulk_parts.h"
#include "program/choose_rooms.h"
#include "program/sample_outline.h"
#include "program/sample_space.h"
#include "trace/run_at_ports.h"
#include "trace/traced_ports.h"

// Plans in which one class of traffic holds up another, and plans in which none does.
namespace mindpipe {
namespace {

constexpr std::int64_t forward = 20'000'000;

/// Equal stages whose forwards take 20 ms, on ports that carry all that is said in forwards of a stage.
struct Meeting {
  std::string schedule = "1f1b";
  int stages = 4, micro_batches = 8, chunks = 1;
  double message = 0.02;  ///< forwards of a stage that a message takes
  double sums = 0;        ///< sums of a stage over data, in parts of `part`
  double part = 0.1;
  double tensor = 0;     ///< sums inside a forward of a stage; twice in a backward
  bool sharded = false;  ///< one half of what sums take scatters gradients, the other gathers values
  Level level_of_data = Level::node, level_of_tensor = Level::node, level_of_messages = Level::node;

  struct Planned {
    PlannedStep step;
    Outline outline;
  };
  PortCosts costs() const {
    const Planned planned = plan();
    return port_costs_of_step(planned.step, planned.outline);
  }
  Planned plan() const {
    Outline outline = equal_stages(stages, micro_batches, chunks, {forward, 2 * forward, forward, forward});
    Network network;
    network.message.picoseconds_per_byte = 1000.0 * message * forward / 8;
    network.message.level = level_of_messages;
    network.data.level = level_of_data;
    network.tensor.level = level_of_tensor;
    if (sums > 0) {
      outline.data = 2;
      const double of_chunk = sums * forward / chunks;
      for (UnitCost& unit : outline.units) {
        unit.gradients = std::llround(of_chunk / (part * forward)) * without_overhang(2, most_part_bytes);
        network.data.picoseconds_per_byte =
            1000 * of_chunk / static_cast<double>(sum_over_data(outline, &unit - outline.units.data()).bytes);
      }
    }
    outline.sharded_optimizer = sharded;
    for (UnitCost& unit : outline.units)
      if (sharded) unit.values = unit.gradients;
    if (tensor > 0) {
      outline.tensor = 2;
      network.tensor.picoseconds_per_byte = 1000;
      for (auto& block : outline.blocks) {
        const auto bytes = std::llround(tensor * forward / chunks);
        block[0].forward_sums = {2, bytes};
        block[0].backward_sums = {2, 2 * bytes};
      }
    }
    PlannedStep step = make_program(outline, schedule, network);
    return {std::move(step), std::move(outline)};
  }
};

/// Subnets in two lanes of four stages, between which units move.
struct Lanes {
  double move = 0.2;  ///< a unit's, of its passes
  double picoseconds_per_byte = 0;
  int micro_batches = 4;

  Outline outline() const { return sample_lanes(2, 4, 8, micro_batches, move); }
  std::vector<Subnet> subnets() const { return sample_subnets(outline(), Draw::uniform, 96, 1); }
  std::int64_t time(const Network& on, const std::function<void(const Ports::Left&)>& see) const {
    return simulate_rooms(outline(), on, {.admission = 16}, subnets(), see).time;
  }
  Network network() const {
    Network network = sample_network(micro_batches);
    network.message.picoseconds_per_byte = picoseconds_per_byte;
    return network;
  }
  PortCosts costs() const {
    return port_costs(network(), [&](const Network& on, const auto& see) { return time(on, see); });
  }
};

constexpr TrafficClass messages = TrafficClass::pipeline, sums = TrafficClass::gradients,
                       products = TrafficClass::tensor, moves = TrafficClass::moves,
                       gathers = TrafficClass::values;

struct DearPair {
  const char* name;
  PortCosts costs;
  TrafficClass waits, holds;
};

std::string text_of(const PortCosts& costs) {
  std::string text = fmt::format("step {:.2f}:", static_cast<double>(costs.time) / forward);
  for (const PairCost& pair : costs.pairs)
    text += fmt::format(" {} for {} waited {:.2f}, {:.2f} %;", name_of(pair.waits), name_of(pair.holds),
                        static_cast<double>(pair.waited) / forward,
                        100.0 * static_cast<double>(pair.cost) / static_cast<double>(costs.time));
  return text;
}

std::vector<DearPair> dear_pairs() {
  const Meeting folded{.schedule = "breadth-first", .micro_batches = 16, .chunks = 4},
      wide{.schedule = "breadth-first", .chunks = 2, .message = 0.3, .sums = 20},
      shared{.schedule = "breadth-first",
             .chunks = 2,
             .message = 0.05,
             .sums = 10,
             .tensor = 0.5,
             .level_of_data = Level::net,
             .level_of_tensor = Level::net,
             .level_of_messages = Level::net};
  const auto of = [](Meeting meeting, double message, double sums, double part) {
    meeting.message = message;
    meeting.sums = sums;
    meeting.part = part;
    return meeting.costs();
  };
  const auto gathered = [](int chunks, double message, double part) {
    return Meeting{.schedule = "breadth-first",
                   .chunks = chunks,
                   .message = message,
                   .sums = 20,
                   .part = part,
                   .sharded = true}
        .costs();
  };
  const Meeting between{.schedule = "breadth-first",
                        .chunks = 2,
                        .message = 0.05,
                        .sums = 20,
                        .tensor = 0.2,
                        .level_of_data = Level::net,
                        .level_of_tensor = Level::net};
  Meeting elastic = wide;
  elastic.schedule = "elastic";
  return {
      {"long parts", of(folded, 0.02, 22, 1), messages, sums},
      {"longer parts and messages", of(folded, 0.1, 22, 2), messages, sums},
      {"long messages of two chunks", wide.costs(), sums, messages},
      {"long messages of elastic chunks", elastic.costs(), sums, messages},
      {"messages of four chunks", of(folded, 0.2, 40, 0.1), sums, messages},
      {"sums inside passes between nodes", shared.costs(), messages, products},
      {"sums inside passes beside many sums over data", between.costs(), sums, products},
      {"gathers in long parts", gathered(4, 0.05, 1), messages, gathers},
      {"gathers in longer parts", gathered(2, 0.2, 2), messages, gathers},
      {"long messages beside gathers", gathered(4, 0.2, 0.5), gathers, messages},
      {"long moves", Lanes{.move = 8, .picoseconds_per_byte = 3e8}.costs(), messages, moves},
      {"long messages beside moves", Lanes{.move = 4, .picoseconds_per_byte = 1e9}.costs(), moves, messages}};
}

TEST(PortCosts, NameTheDearestPairFirst) {
  for (const DearPair& one : dear_pairs()) {
    const PortCosts& costs = one.costs;
    ASSERT_FALSE(costs.dear().empty()) << one.name << ": " << text_of(costs);
    const PairCost first = costs.dear().front();
    EXPECT_EQ(first.waits, one.waits) << one.name << ": " << text_of(costs);
    EXPECT_EQ(first.holds, one.holds) << one.name << ": " << text_of(costs);
    EXPECT_GE(50 * first.cost, costs.time) << one.name << ": " << text_of(costs);
    EXPECT_GT(first.waited, 0) << one.name;
  }
}

TEST(PortCosts, NameNobodyWhereNobodyIsHeldUp) {
  const std::vector<std::pair<const char*, PortCosts>> plans{
      {"one stage", Meeting{.stages = 1, .sums = 10}.costs()},
      {"no sums", Meeting{.message = 0.3}.costs()},
      {"sums on ports of another level", Meeting{.schedule = "breadth-first",
                                                 .micro_batches = 16,
                                                 .chunks = 4,
                                                 .message = 0.2,
                                                 .sums = 40,
                                                 .level_of_data = Level::net}
                                             .costs()},
      {"sums behind the passes", Meeting{.sums = 10}.costs()},
      {"large sums behind the passes", Meeting{.message = 0.3, .sums = 20}.costs()},
      {"few sums of two chunks",
       Meeting{.schedule = "interleaved", .chunks = 2, .sums = 10, .part = 1}.costs()},
      {"short parts of four chunks",
       Meeting{.schedule = "breadth-first", .micro_batches = 16, .chunks = 4, .sums = 22}.costs()},
      {"moves that have the ports alone", Lanes{}.costs()},
      {"moves and short messages", Lanes{.move = 1, .picoseconds_per_byte = 1e7}.costs()}};
  for (const auto& [name, costs] : plans) EXPECT_TRUE(costs.dear().empty()) << name << ": " << text_of(costs);
}

TEST(PortCosts, AreWhatASimulationGainsWhereOneDoesNotFindTheOther) {
  const Lanes lanes{.move = 1, .picoseconds_per_byte = 1e7};
  const PortCosts costs = lanes.costs();
  ASSERT_FALSE(costs.pairs.empty());
  for (const PairCost& pair : costs.pairs) {
    Network blind = lanes.network();
    blind.unseen = Unseen{pair.waits, pair.holds};
    EXPECT_EQ(pair.cost, costs.time - lanes.time(blind, nullptr));
  }
  EXPECT_EQ(costs.time, lanes.time(lanes.network(), nullptr));
}

/// The pairs by a trace of twelve steps that take what the plan says, with noise.
PortCosts costs_by_trace(const Meeting& meeting) {
  const Meeting::Planned planned = meeting.plan();
  MadeRun run{.grid = {1, planned.outline.data, meeting.stages, 1},
              .plan = planned.step,
              .noise = 0.002,
              .travel = 0.01};
  run.paper = durations_of(run.plan.program, planned.outline, run.plan.network);
  const ReplayGraph graph(run.grid, run.plan.program);
  const StepTrace trace = trace_at_ports(run, run.plan.network, 12, 3);
  return TracedPorts(trace, graph, measured_times(trace, graph)).costs(Counted::behind_the_first);
}

TEST(PortCosts, AreTheSameByATraceOfThePlan) {
  const Meeting long_parts{
      .schedule = "breadth-first", .micro_batches = 16, .chunks = 4, .sums = 22, .part = 1},
      long_messages{.schedule = "breadth-first", .chunks = 2, .message = 0.3, .sums = 20};
  for (const Meeting& meeting : {long_parts, long_messages}) {
    const PortCosts planned = meeting.costs(), traced = costs_by_trace(meeting);
    ASSERT_FALSE(traced.pairs.empty()) << text_of(planned);
    const PairCost plan = planned.pairs[0], trace = traced.pairs[0];
    EXPECT_EQ(std::pair(trace.waits, trace.holds), std::pair(plan.waits, plan.holds)) << text_of(traced);
    EXPECT_GE(100 * trace.cost, traced.time) << text_of(traced);
  }
  const PortCosts planned = long_parts.costs(), traced = costs_by_trace(long_parts);
  const auto near = [](std::int64_t traced, std::int64_t planned) {
    EXPECT_NEAR(static_cast<double>(traced) / static_cast<double>(planned), 1, 0.15);
  };
  near(traced.pairs[0].cost, planned.pairs[0].cost);
  near(traced.pairs[0].waited / 24, planned.pairs[0].waited);  // of twelve steps and two replicas
}

}  // namespace
}  // namespace mindpipe
