#include "plan/trace_prices.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "config/config.h"
#include "core/middle.h"
#include "plan/network_on_paper.h"
#include "trace/rank_speeds.h"
#include "trace/trace_parts.h"
#include "trace/traced_ports.h"

namespace mindpipe {
namespace {

/// The parts of a block's work that have prices of their own.
enum PricedPart : std::uint8_t { of_forward, of_input, of_weight, priced_parts };

/// An equation: the unknown factors of these blocks' work, times what that takes on paper, are what a pass
/// took.
struct PassEquation {
  std::map<int, double> paper;  ///< by unknown
  double took = 0;
};

/// The factors that fit best, each drawn a little to `mean`, none below a twentieth of it.
std::vector<double> fit_factors(const std::vector<PassEquation>& equations, int unknowns, double mean) {
  constexpr double drawn = 0.01, least = 0.05;
  std::vector<std::vector<double>> rows(unknowns, std::vector<double>(unknowns + 1, 0.0));
  for (int unknown = 0; unknown < unknowns; ++unknown) {
    rows[unknown][unknown] = drawn;
    rows[unknown][unknowns] = drawn * mean;
  }
  for (const PassEquation& equation : equations)
    for (const auto& [one, takes] : equation.paper) {
      const double scale = 1 / (equation.took * equation.took);
      for (const auto& [other, also] : equation.paper) rows[one][other] += takes * also * scale;
      rows[one][unknowns] += takes * equation.took * scale;
    }
  for (int pivot = 0; pivot < unknowns; ++pivot)  // symmetric and positive: no rows have to be swapped
    for (int row = 0; row < unknowns; ++row) {
      if (row == pivot) continue;
      const double factor = rows[row][pivot] / rows[pivot][pivot];
      for (int column = pivot; column <= unknowns; ++column)
        rows[row][column] -= factor * rows[pivot][column];
    }
  std::vector<double> factors;
  for (int unknown = 0; unknown < unknowns; ++unknown)
    factors.push_back(std::max(least * mean, rows[unknown][unknowns] / rows[unknown][unknown]));
  return factors;
}

/// Fits the factors of one trace.
class TraceFit {
 public:
  TraceFit(const StepTrace& trace, const ReplayGraph& graph, const ReplayTimes& measured,
           const Config& config)
      : trace_(trace),
        graph_(graph),
        measured_(measured),
        links_(TracedPorts(trace, graph, measured).of_links()),
        model_(graph, measured, trace.is_priced ? trace.paper : Durations()),
        network_(network_on_paper(config)) {
    CostModel costs(config, make_layout(config, {}));
    outline_ = costs.outline();
    std::map<std::uint64_t, int> numbers;
    for (int block = 0; block < outline_.all_blocks(); ++block)
      key_of_.push_back(
          numbers.emplace(costs.work_of(block), static_cast<int>(numbers.size())).first->second);
    keys_ = static_cast<int>(numbers.size());
    done_in_.assign(model_.works().count(), -1);
    for (int action = 0; action < graph.actions(); ++action)
      if (const int work = model_.works().of(action); work >= 0) done_in_[work] = action;
  }

  TracePrices fit() {
    TracePrices prices;
    for (int work = 0; work < model_.works().count(); ++work)
      prices.has_halves = prices.has_halves || model_.works().at(work).kind == ActionKind::backward_weight;
    fit_passes(prices);
    const RankSpeeds speeds(model_);
    for (int rank = 0; rank < graph_.ranks(); ++rank)
      prices.ranks.push_back(model_.compares() ? speeds.usual(rank) : 1);
    prices.lags = usual_lags(graph_, measured_);
    prices.update = ratio([](const Action& action) { return action.kind == ActionKind::update; });
    prices.message = ratio([](const Action& action) { return crosses_cut(action) && !sends(action); });
    prices.data =
        ratio([](const Action& action) { return is_collective(action) && action.group == Members::data; });
    prices.grid = ratio([](const Action& action) { return action.kind == ActionKind::sum_scalar; });
    return prices;
  }

 private:
  int unknown(int block, PricedPart part) const { return priced_parts * key_of_[block] + part; }

  /// What a pass over these blocks took, without tensor sums, and what it takes on paper.
  PassEquation equation_of(int work) const {
    const TraceWorks::Work& what = model_.works().at(work);
    const int action = done_in_[work];
    const std::int64_t sums = measured_.sums(action) > 0 ? 0 : network_.tensor_time(graph_.at(action));
    PassEquation equation{.paper = {}, .took = model_.G(work) - static_cast<double>(sums)};
    for (int block = what.first; block < what.last; ++block) {
      const BlockCost& cost = outline_.cost(block);
      const auto add = [&](PricedPart part, std::int64_t time) {
        equation.paper[unknown(block, part)] += static_cast<double>(time);
      };
      if (what.kind == ActionKind::forward) add(of_forward, cost.forward);
      if (what.kind == ActionKind::backward) add(of_input, cost.backward);
      if (what.kind == ActionKind::backward_input) add(of_input, cost.backward_input);
      if (what.kind == ActionKind::backward_weight) add(of_weight, cost.backward_weight);
    }
    return equation;
  }

  void fit_passes(TracePrices& prices) {
    std::vector<PassEquation> equations;
    double took = 0, paper = 0;
    for (int work = 0; work < model_.works().count(); ++work) {
      if (!is_pass(action_of(model_.works().at(work).kind))) continue;
      PassEquation equation = equation_of(work);
      double all = 0;
      for (const auto& [number, time] : equation.paper) all += time;
      if (equation.took <= 0 || all <= 0) continue;
      took += equation.took;
      paper += all;
      equations.push_back(std::move(equation));
    }
    const std::vector<double> factors =
        fit_factors(equations, priced_parts * keys_, paper > 0 ? took / paper : 1);
    for (int block = 0; block < outline_.all_blocks(); ++block) {
      prices.forward.push_back(factors[unknown(block, of_forward)]);
      prices.input.push_back(factors[unknown(block, of_input)]);
      prices.weight.push_back(factors[unknown(block, prices.has_halves ? of_weight : of_input)]);
    }
  }

  /// The median of measured over paper times of some actions; 1 where there are none.
  template <class Chosen>
  double ratio(const Chosen& chosen) const {
    std::vector<double> ratios;
    for (int action = 0; action < graph_.actions(); ++action) {
      const std::int64_t paper = trace_.paper[graph_.stage_of(action)][graph_.index_of(action)];
      if (paper <= 0 || !chosen(graph_.at(action))) continue;
      for (const ReplayRow& row : links_.rows)
        if (!row.eager[action])
          ratios.push_back(static_cast<double>(row.lasts[action]) / static_cast<double>(paper));
    }
    return ratios.empty() ? 1 : median_of(ratios);
  }

  const StepTrace& trace_;
  const ReplayGraph& graph_;
  const ReplayTimes& measured_;
  const ReplayTimes links_;  ///< transfers without their waits at ports, where plans let them wait again
  const WorkModel model_;
  const Network network_;
  Outline outline_;
  std::vector<int> key_of_, done_in_;  ///< by block its kind of work; by work an action that does it
  int keys_ = 0;
};

void reprice(std::int64_t& time, double factor) { time = std::llround(static_cast<double>(time) * factor); }

void reprice(Link& link, double factor) {
  reprice(link.latency, factor);
  link.picoseconds_per_byte *= factor;
}

/// A block's cost at these prices.
void reprice(BlockCost& cost, const TracePrices& prices, int block) {
  reprice(cost.forward, prices.forward[block]);
  reprice(cost.backward_input, prices.input[block]);
  reprice(cost.backward_weight, prices.weight[block]);
  if (prices.has_halves) cost.backward = cost.backward_input + cost.backward_weight;
  else reprice(cost.backward, prices.input[block]);
}

}  // namespace

TracePrices fit_trace_prices(const StepTrace& trace, const ReplayGraph& graph, const ReplayTimes& measured,
                             const Config& config) {
  return TraceFit(trace, graph, measured, config).fit();
}

ChangeOnPaper with_trace_prices(const TracePrices& prices) {
  return [prices](Outline& outline, Network& network) {
    for (int block = 0; block < outline.all_blocks(); ++block)
      for (BlockCost& cost : outline.blocks[block]) reprice(cost, prices, block);
    for (UnitCost& unit : outline.units) reprice(unit.update, prices.update);
    reprice(network.message, prices.message);
    for (auto& [ends, link] : network.between) reprice(link, prices.message);
    reprice(network.data, prices.data);
    reprice(network.grid, prices.grid);
  };
}

namespace {

/// A profile of the links and rates that plans of the configuration know, at these prices.
Profile known_profile(const TracePrices& prices, const Config& config) {
  Profile profile;
  if (!config.device.profile.empty()) profile = read_profile(config.device.profile);
  else profile.update = profile.clear = description_of(config).bytes;
  profile.update /= prices.update;
  const LinkDescription links = links_on_paper(config);
  profile.latency = links.latency * prices.message;
  profile.rate = links.bytes / prices.message;
  profile.latency_between_nodes = links.latency_between_nodes * prices.message;
  profile.rate_between_nodes = links.bytes_between_nodes / prices.message;
  return profile;
}

}  // namespace

Profile profile_of(const TracePrices& prices, const Config& config,
                   const std::vector<LayoutChoice>& layouts) {
  constexpr double second = 1e-9;
  Profile profile = known_profile(prices, config);
  std::vector<double> factors;
  for (const LayoutChoice& layout : layouts) {
    const std::optional<Config> one = with_layout_if_allowed(config, layout);
    if (!one) continue;
    CostModel costs(*one, make_layout(*one, {}));
    Outline outline = costs.outline();
    const bool splits = row_of(one->schedule.kind).splits_backward;
    for (int block = 0; block < outline.all_blocks(); ++block) {
      BlockCost& cost = outline.blocks[block].front();
      const auto before = static_cast<double>(cost.passes());
      reprice(cost, prices, block);
      if (before > 0) factors.push_back(static_cast<double>(cost.passes()) / before);
      profile.passes[costs.work_of(block)] = {
          .forward = second * static_cast<double>(cost.forward),
          .input = second * static_cast<double>(splits ? cost.backward_input : cost.backward),
          .weight = splits ? second * static_cast<double>(cost.backward_weight) : 0,
          .spread = 0,
          .block = fmt::format("block {}", block)};
    }
  }
  if (!factors.empty()) profile.factor *= median_of(factors);
  return profile;
}

}  // namespace mindpipe
