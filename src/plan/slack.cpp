#include "plan/slack.h"

#include <cmath>

namespace mindpipe {
namespace {

/// What a step may take longer; it counts as equal.
constexpr double allowed = 0.002;

/// The largest number from 0 to 1 that holds, to a thousandth; what holds for one holds for all below.
template <class Holds>
double largest(const Holds& holds) {
  if (holds(1)) return 1;
  double good = 0, bad = 1;
  while (bad - good > 1e-3) {
    const double middle = (good + bad) / 2;
    (holds(middle) ? good : bad) = middle;
  }
  return good;
}

}  // namespace

Durations slowed(const Program& program, Durations durations, const std::vector<double>& slack) {
  for (std::size_t rank = 0; rank < durations.size(); ++rank)
    for (std::size_t i = 0; i < durations[rank].size(); ++i) {
      const Action& action = program.ranks[rank][i];
      if (is_work(action))
        durations[rank][i] = std::llround(static_cast<double>(durations[rank][i]) * (1 + slack[rank]));
    }
  return durations;
}

Slack slack_of(const Program& program, const Durations& durations, const Network& network) {
  const auto step = [&](const std::vector<double>& slack) {
    return static_cast<double>(simulate(program, slowed(program, durations, slack), network).step);
  };
  Slack slack{std::vector<double>(program.ranks.size(), 0), 0};
  const double before = step(slack.of_ranks), limit = before * (1 + allowed);
  std::vector<double> alone = slack.of_ranks;
  for (std::size_t rank = 0; rank < alone.size(); ++rank)
    alone[rank] = largest([&](double x) {
      std::vector<double> one(alone.size(), 0);
      one[rank] = x;
      return step(one) <= limit;
    });
  const auto scaled = [&](double factor) {
    std::vector<double> all = alone;
    for (double& x : all) x *= factor;
    return all;
  };
  // The queues never interrupt, so a longer pass may by chance shorten a step: what holds is looked at
  // itself.
  slack.of_ranks = scaled(largest([&](double factor) { return step(scaled(factor)) <= limit; }));
  slack.lengthens = before > 0 ? step(slack.of_ranks) / before - 1 : 0;
  return slack;
}

}  // namespace mindpipe
