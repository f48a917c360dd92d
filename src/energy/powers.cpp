#include "energy/powers.h"

#include <algorithm>
#include <cmath>

namespace mindpipe {
namespace {

/// Whether the work of one is so little beside another's that it may be the system's own: below a hundredth
/// of the processors' time, and a tenth of the other's work. Of two jobs one at most is that little to the
/// other.
bool is_little(double work, double beside, double processor_seconds) {
  return work <= 0.01 * processor_seconds && work <= 0.1 * beside;
}

/// Sums over windows that a straight fit through the origin needs.
struct Sums {
  double bb = 0, br = 0, rr = 0, jb = 0, jr = 0, joules = 0, busy = 0, rest = 0;
};

Sums sums_of(const std::vector<EnergyWindow>& windows) {
  Sums s;
  for (const EnergyWindow& w : windows) {
    s.bb += w.busy * w.busy;
    s.br += w.busy * w.rest;
    s.rr += w.rest * w.rest;
    s.jb += w.joules * w.busy;
    s.jr += w.joules * w.rest;
    s.joules += w.joules;
    s.busy += w.busy;
    s.rest += w.rest;
  }
  return s;
}

}  // namespace

Powers estimated_powers(const std::string& device, int threads) {
  if (device == "a100") return {340, 150, 60, 200};
  if (device == "h100" || device == "h200") return {620, 250, 90, 350};
  const double cores = std::max(threads, 1);
  return {6 * cores, 5 * cores, 2 * cores, 2 * cores};
}

FittedPowers fit_powers(const std::vector<EnergyWindow>& windows, const Powers& estimate) {
  constexpr double sure = 0.1;
  const Sums s = sums_of(windows);
  const double guessed = estimate.busy_rank() * s.busy + estimate.waiting_rank() * s.rest,
               scale = guessed > 0 ? s.joules / guessed : 0;
  FittedPowers powers{estimate.busy_rank() * scale, estimate.waiting_rank() * scale, false, windows.size()};
  const double det = s.bb * s.rr - s.br * s.br;
  if (windows.size() < fewest_windows || det <= 1e-9 * s.bb * s.rr) return powers;
  const FittedPowers found{(s.jb * s.rr - s.jr * s.br) / det, (s.jr * s.bb - s.jb * s.br) / det, true,
                           windows.size()};
  double squares = 0;
  for (const EnergyWindow& w : windows) {
    const double off = w.joules - found.busy * w.busy - found.rest * w.rest;
    squares += off * off;
  }
  const double variance = squares / static_cast<double>(windows.size() - 2);
  const bool is_sure = std::sqrt(variance * s.rr / det) <= sure * found.busy &&
                       std::sqrt(variance * s.bb / det) <= sure * found.rest;
  return is_sure && found.busy > 0 && found.rest > 0 ? found : powers;
}

double part_of_job(const NodeInterval& node) {
  const double all_time = node.node_processors * node.seconds, own_time = node.job_processors * node.seconds,
               mine = std::clamp(node.job_cpu, 0.0, node.node_cpu), others = node.node_cpu - mine,
               there = std::max(node.there_cpu, mine), others_there = there - mine;
  if (node.node_cpu <= 0 || all_time <= 0) return 0;
  if (is_little(others, mine, all_time)) return node.joules;
  // Somebody may take the node for his own.
  if (is_little(mine, others, all_time)) return 0;
  const double idle = std::min(node.idle_watts * node.seconds, node.joules);
  const bool has_own = is_little(others_there, mine, own_time);
  const double held = std::clamp(has_own ? own_time - others_there : mine, 0.0, all_time) / all_time;
  return idle * held + (node.joules - idle) * mine / node.node_cpu;
}

}  // namespace mindpipe
