// thorough
#include <gtest/gtest.h>

#include <string>

#include "trace/causes.h"
#include "trace/run_at_ports.h"

namespace mindpipe {
namespace {

constexpr int traced_steps = 12;

/// How transfers go to ports: in one piece each, messages in parts between which others pass, or sums, too.
enum class Pieces { none, of_messages, of_all };

/// One drawn grid, schedule, noise, and how long messages and parts of sums take.
class PortDraw {
 public:
  PortDraw(std::uint64_t seed, Pieces pieces)
      : seed_(seed), random_(seed), run_(pieces == Pieces::none ? run_of_whole() : run_in_pieces(pieces)) {}

  const Network& network() const { return run_.plan.network; }
  Network blind(TrafficClass by, TrafficClass what) const {
    Network network = run_.plan.network;
    network.unseen = Unseen{by, what};
    return network;
  }
  Network apart() const {
    Network network = run_.plan.network;
    network.data.level = Level::net;
    return network;
  }

  StepTrace trace(const Network& network) const { return trace_at_ports(run_, network, traced_steps, seed_); }
  std::int64_t period(const StepTrace& trace) const {
    return replayed_period(graph_, measured_times(trace, graph_), traced_steps);
  }
  std::vector<Cause> causes(const StepTrace& trace) const {
    const ReplayTimes measured = measured_times(trace, graph_);
    const TracedPorts traffic(trace, graph_, measured);
    return causes_of(trace, graph_, measured, WorkModel(graph_, measured, run_.paper), run_.paper,
                     Counted::behind_the_first, &traffic);
  }

 private:
  int below(int end) { return static_cast<int>(random_() % static_cast<std::uint64_t>(end)); }
  double between(double least, double most) {
    return std::uniform_real_distribution<double>(least, most)(random_);
  }

  MadeRun run_of_whole() {
    const int stages = 2 + below(3), data = 2 + below(3);
    const ScheduleKind schedule = below(2) == 0 ? ScheduleKind::breadth_first : ScheduleKind::interleaved;
    MadeRun run = made_run({.tensor = 1, .data = data, .pipeline = stages, .supernet = 1},
                           stages * (2 + below(2)), schedule, 2 + 2 * below(2));
    run.noise = between(0.002, 0.02);
    run.travel = 0.002;
    const double message = between(0.1, 1) * 1e6, part = between(0.2, 2) * 1e6;
    set_transfers(run, message, part);
    return run;
  }
  /// Messages that are dearer than passes, in two to four parts. A message then waits for others at in ports,
  /// part by part, and for a sum in one piece or a part of it.
  MadeRun run_in_pieces(Pieces pieces) {
    const int stages = 2 + below(3), data = 2 + below(3), parts = 2 + below(3);
    MadeRun run =
        made_run({.tensor = 1, .data = data, .pipeline = stages, .supernet = 1}, stages * (2 + below(2)),
                 ScheduleKind::interleaved, 2, false, 2, [&](Outline& outline) {
                   outline.part_bytes = 1'000'000 / parts + 1;
                   for (UnitCost& unit : outline.units) unit.gradients = 500'000;
                 });
    if (pieces == Pieces::of_all) run.plan.network.calls.of_sum = 2 + below(2);
    run.noise = between(0.002, 0.02);
    run.travel = 0.002;
    const double message = between(2, 5) * 1e6, part = between(0.5, 2) * 1e6;
    set_transfers(run, message, part);
    return run;
  }

  static void set_transfers(MadeRun& run, double message, double part) {
    for (std::size_t stage = 0; stage < run.paper.size(); ++stage)
      for (std::size_t index = 0; index < run.paper[stage].size(); ++index) {
        const Action& what = run.plan.program.ranks[stage][index];
        if (crosses_cut(what)) run.paper[stage][index] = std::llround(message);
        if (is_collective(what) && what.group == Members::data) run.paper[stage][index] = std::llround(part);
      }
  }

  std::uint64_t seed_;
  std::mt19937_64 random_;
  MadeRun run_;
  ReplayGraph graph_{run_.grid, run_.plan.program};
};

bool holds_up_messages(const Cause& cause) {
  return cause.kind == Cause::contention && cause.waits == TrafficClass::pipeline &&
         cause.holds == TrafficClass::gradients;
}

/// Counts among a hundred drawn runs: how often the sums have to be named, and how often what they cost is
/// right.
struct Asked {
  const char* name;
  Pieces pieces;
  int named, close;
};

class PortCulprit : public testing::TestWithParam<Asked> {};

TEST_P(PortCulprit, IsNamedFirstWithWhatItCostsWhereSumsHoldUpMessages) {
  constexpr int drawn_runs = 100;
  constexpr std::int64_t millisecond = 1'000'000;
  int tried = 0, right = 0, close = 0;
  std::string wrong;
  for (int seed = 0; tried < drawn_runs; ++seed) {
    const PortDraw draw(9000 + seed, GetParam().pieces);
    const StepTrace traced = draw.trace(draw.network());
    const std::int64_t now = draw.period(traced);
    const auto saves = [&](TrafficClass by, TrafficClass what) {
      return now - draw.period(draw.trace(draw.blind(by, what)));
    };
    const std::int64_t costs = saves(TrafficClass::pipeline, TrafficClass::gradients);
    const bool is_dear = 50 * costs >= now;
    if (!is_dear || costs < 2 * saves(TrafficClass::gradients, TrafficClass::pipeline)) continue;
    ++tried;
    const std::vector<Cause> found = draw.causes(traced);
    const bool named = !found.empty() && holds_up_messages(found[0]);
    right += named ? 1 : 0;
    const std::int64_t off = named ? std::abs(found[0].saves - costs) : costs;
    const bool is_close = named && off <= std::max(costs * 15 / 100, millisecond);
    close += is_close ? 1 : 0;
    if (!is_close)
      wrong += fmt::format("\nseed {}: {} of {} ns was found as kind {} of {} ns", seed, costs, now,
                           found.empty() ? -1 : static_cast<int>(found[0].kind),
                           found.empty() ? 0 : found[0].saves);
  }
  EXPECT_GE(right, GetParam().named) << wrong;
  EXPECT_GE(close, GetParam().close) << wrong;
  RecordProperty("right", right);
  RecordProperty("close", close);
}

TEST_P(PortCulprit, IsNobodyWhereSumsHavePortsOfTheirOwn) {
  for (int seed = 0; seed < 200; ++seed) {
    const PortDraw draw(7000 + seed, GetParam().pieces);
    const std::vector<Cause> found = draw.causes(draw.trace(draw.apart()));
    EXPECT_TRUE(found.empty()) << "seed " << seed << " kind " << static_cast<int>(found[0].kind) << " rank "
                               << found[0].rank << " factor " << found[0].factor;
  }
}

INSTANTIATE_TEST_SUITE_P(Runs, PortCulprit,
                         testing::Values(Asked{"Whole", Pieces::none, 99, 99},
                                         Asked{"WithMessagesInParts", Pieces::of_messages, 99, 98},
                                         Asked{"WithAllInParts", Pieces::of_all, 98, 97}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace mindpipe
