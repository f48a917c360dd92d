#include "app/energy/slack_advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plan/slack.h"

namespace mindpipe {
namespace {

constexpr double worth_saying = 0.01;

/// Joules that a stage's clocks could save: of what computing takes above an idle device, where a dynamic
/// energy goes with the clock to the power `exponent`.
double saved(double dynamic_joules, double slack, double exponent) {
  return dynamic_joules * (1 - std::pow(1 + slack, -exponent));
}

/// "4.1 to 6.8 %"
std::string range_text(double least, double most) {
  return fmt::format("{:.1f} to {:.1f} %", 100 * least, 100 * most);
}

}  // namespace

SlackAdvice slack_advice(const RunPlan& plan, const EnergyAccount& account,
                         const std::vector<RankEnergy>& ranks, const Coord& shape, const Powers& estimate) {
  constexpr double most_actions = 3e7, simulations = 13;
  const Program& program = plan.training.program;
  const auto stages = program.ranks.size();
  if (!plan.trains_steps() || stages < 2 || account.joules <= 0) return {};
  double actions = 0;
  for (const auto& list : program.ranks) actions += static_cast<double>(list.size());
  if (actions * simulations * static_cast<double>(stages) > most_actions) return {{}, actions};
  const Slack slack =
      slack_of(program, durations_of(program, plan.outline, plan.training.network), plan.training.network);
  // A clock changes what computing takes above an idle device.
  const double dynamic = account.powers.busy * (estimate.compute - estimate.idle) / estimate.busy_rank();
  SlackAdvice advice;
  for (std::size_t stage = 0; stage < stages; ++stage) {
    double busy = 0;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
      if (coord_at(shape, static_cast<int>(rank)).pipeline == static_cast<int>(stage))
        busy += static_cast<double>(ranks[rank].spent.work()) * 1e-9;
    // What is said is what holds: never rounded up.
    const double slower = std::floor(1000 * slack.of_ranks[stage]) / 1000;
    advice.stages.push_back({slower, saved(dynamic * busy, slower, 1) / account.joules,
                             saved(dynamic * busy, slower, 2) / account.joules});
  }
  return advice;
}

std::string slack_text(const SlackAdvice& advice) {
  constexpr std::size_t most_stages = 8;
  if (advice.skipped_actions > 0)
    return fmt::format(
        "note: how much slower stages may run is not known: a step of {:.1f} million actions takes too long "
        "to simulate here\n",
        advice.skipped_actions * 1e-6);
  std::vector<std::size_t> order;
  double least = 0, most = 0;
  for (std::size_t stage = 0; stage < advice.stages.size(); ++stage) {
    if (advice.stages[stage].slower < worth_saying) continue;
    order.push_back(stage);
    least += advice.stages[stage].least;
    most += advice.stages[stage].most;
  }
  if (order.empty()) return "";
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return advice.stages[a].most > advice.stages[b].most;
  });
  std::string each;
  for (std::size_t i = 0; i < std::min(order.size(), most_stages); ++i) {
    const StageSaving& saving = advice.stages[order[i]];
    const std::string stage =
        i == 0 ? fmt::format("stage {} may run", order[i]) : fmt::format(", stage {}", order[i]);
    each += fmt::format("{} {:.1f} %{}: {}{}", stage, 100 * saving.slower, i == 0 ? " slower" : "",
                        range_text(saving.least, saving.most), i == 0 ? " of the run's energy" : "");
  }
  if (order.size() > most_stages) each += fmt::format(", and {} more", order.size() - most_stages);
  if (order.size() > 1) each += fmt::format("; all at once {}", range_text(least, most));
  return fmt::format(
      "note: by the simulator, with the step as long as it is, {} (estimated; nothing here sets "
      "a clock)\n",
      each);
}

}  // namespace mindpipe
