#include "program/balance.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/check.h"
#include "program/make_program.h"
#include "program/moving_step.h"
#include "program/partition.h"

namespace mindpipe {
namespace {

constexpr std::int64_t thousandths = 1000;

/// Blocks that share a table with another one.
std::vector<int> tied_blocks(const Outline& outline) {
  std::vector<int> tied;
  for (const UnitCost& unit : outline.units)
    if (unit.values > 0 && unit.blocks.size() > 1)
      tied.insert(tied.end(), unit.blocks.begin(), unit.blocks.end());
  std::sort(tied.begin(), tied.end());
  return tied;
}

/// The place nearest to `to` that a boundary reaches from `from` without a tied block changing its side.
int within_ties(const std::vector<int>& tied, int from, int to) {
  const auto behind = std::lower_bound(tied.begin(), tied.end(), from);
  if (behind != tied.begin()) to = std::max(to, *std::prev(behind) + 1);
  if (behind != tied.end()) to = std::min(to, *behind);
  return to;
}

bool can_follow(const std::vector<int>& from, const std::vector<int>& next) {
  for (std::size_t i = 1; i < from.size(); ++i)
    if (next[i] <= next[i - 1] || next[i - 1] > from[i] || next[i] < from[i - 1]) return false;
  return true;
}

std::vector<int> moved_towards(const std::vector<int>& from, const std::vector<int>& to, int most) {
  std::vector<int> next = from;
  for (std::size_t i = 0; i < from.size(); ++i) next[i] += std::clamp(to[i] - from[i], -most, most);
  return next;
}

/// Whether the slowest stage is more than so many percent above the mean.
bool are_unequal(std::span<const std::int64_t> worked, std::int64_t percent) {
  const auto stages = static_cast<std::int64_t>(worked.size());
  const std::int64_t sum = std::accumulate(worked.begin(), worked.end(), std::int64_t{0}),
                     most = *std::max_element(worked.begin(), worked.end());
  return most * stages * 100 > sum * (100 + percent);
}

std::vector<std::int64_t> costs_of(const Outline& outline) {
  std::vector<std::int64_t> costs;
  for (int block = 0; block < outline.all_blocks(); ++block) costs.push_back(outline.cost(block).passes());
  return costs;
}

}  // namespace

std::vector<std::vector<int>> cuts_between(const Outline& outline, const std::vector<int>& to, int most) {
  const std::vector<int> tied = tied_blocks(outline);
  std::vector<int> here = outline.first_block, goal = here;
  for (std::size_t i = 1; i + 1 < here.size(); ++i) goal[i] = within_ties(tied, here[i], to[i]);
  std::vector<std::vector<int>> cuts;
  if (!std::is_sorted(goal.begin(), goal.end(), std::less_equal<>())) return cuts;
  while (here != goal) {
    std::vector<int> next = moved_towards(here, goal, most);
    if (!can_follow(here, next)) next = moved_towards(here, goal, 1);
    cuts.push_back(here = std::move(next));
  }
  return cuts;
}

Balance::Balance(Outline outline, Network network, ScheduleKind schedule, const BalanceRule& rule)
    : outline_(std::move(outline)), network_(std::move(network)), schedule_(schedule), rule_(rule) {
  moving_step(outline_, outline_.first_block, rule_.room);  // refuses what has no moving steps
  outline_.slower.clear();
  priced_ = step_with(outline_).busy;
}

Timeline Balance::step_with(const Outline& outline) const {
  return plan_step(outline, order_of_step(outline, schedule_, network_), network_).expected;
}

std::optional<Balancing> Balance::hear(std::int64_t step, std::span<const std::int64_t> worked) {
  MP_CHECK(std::ssize(worked) == outline_.stages, "a report of {} stages, where there are {}", worked.size(),
           outline_.stages);
  // A report behind a move has steps in it that came before.
  if (step - rule_.every < deaf_until_) return {};
  if (!are_unequal(worked, rule_.percent)) unequal_.clear();
  else unequal_.emplace_back(worked.begin(), worked.end());
  if (std::ssize(unequal_) < rule_.reports) return {};
  std::optional<Balancing> found = plan(step, std::exchange(unequal_, {}));
  if (!found) return {};
  deaf_until_ = found->first_step + std::ssize(found->cuts) - 1;
  outline_.first_block = found->cuts.back();
  priced_ = step_with(outline_).busy;
  return found;
}

/// Prices are those of one device: a stage's slowness is by how much its report is above them. Who is about
/// as fast as the middle one is taken for as fast.
std::vector<std::int64_t> Balance::slowness_by(const Report& report) const {
  std::vector<std::int64_t> slowness;
  for (int stage = 0; stage < outline_.stages; ++stage) {
    const std::int64_t priced = std::max<std::int64_t>(1, priced_[stage] * rule_.every);
    slowness.push_back(
        std::max<std::int64_t>(1, report[stage] / (std::max<std::int64_t>(1, priced / thousandths))));
  }
  std::vector<std::int64_t> sorted = slowness;
  std::sort(sorted.begin(), sorted.end());
  const std::int64_t middle = sorted[(sorted.size() - 1) / 2];
  for (std::int64_t& each : slowness)
    if (std::max(each, middle) * 100 <= std::min(each, middle) * (100 + rule_.percent)) each = middle;
  return slowness;
}

Outline Balance::slowed(const std::vector<std::int64_t>& slowness) const {
  Outline slow = outline_;
  for (const std::int64_t each : slowness) slow.slower.push_back(static_cast<double>(each) / thousandths);
  return slow;
}

bool Balance::gains(std::int64_t before, std::int64_t after) const {
  return (before - after) * 100 >= before * rule_.gain;
}

/// The cut follows from all reports together, and has to be worth it by each of them.
std::optional<Balancing> Balance::plan(std::int64_t step, const std::vector<Report>& reports) const {
  Balancing found{.first_step = step + rule_.lead};
  Report mean(reports.front().size(), 0);
  for (const Report& report : reports)
    for (std::size_t stage = 0; stage < mean.size(); ++stage)
      mean[stage] += report[stage] / std::ssize(reports);
  found.slowness = slowness_by(mean);
  Outline slow = slowed(found.slowness);
  found.cuts = cuts_between(slow, near_cuts(costs_of(slow), slow.first_block, slow.slower), rule_.room);
  if (found.cuts.empty()) return {};
  found.before = step_with(slow).step;
  std::int64_t still = found.before;
  for (const std::vector<int>& cut : found.cuts) {
    const Outline moving = moving_step(slow, cut, rule_.room);
    found.moving += std::max<std::int64_t>(0, step_with(moving).step - still);
    slow = after_move(moving);
    still = step_with(slow).step;
  }
  found.after = still;
  if (!gains(found.before, found.after) || (found.before - found.after) * rule_.pays_back < found.moving)
    return {};
  for (const Report& report : reports) {
    Outline as_reported = slowed(slowness_by(report));
    const std::int64_t before = step_with(as_reported).step;
    as_reported.first_block = found.cuts.back();
    if (!gains(before, step_with(as_reported).step)) return {};
  }
  return found;
}

std::uint64_t Balancing::digest() const {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a, a word at a time
  const auto add = [&](std::int64_t number) {
    hash = (hash ^ static_cast<std::uint64_t>(number)) * 0x100000001b3u;
    hash ^= hash >> 32;
  };
  for (const std::int64_t number : {first_step, before, after, moving}) add(number);
  for (const std::int64_t number : slowness) add(number);
  for (const std::vector<int>& cut : cuts)
    for (const int block : cut) add(block);
  return hash;
}

std::string to_string(const Balancing& balancing) {
  const std::vector<std::int64_t>& slowness = balancing.slowness;
  const auto slowest = std::max_element(slowness.begin(), slowness.end());
  const double mean =
      static_cast<double>(std::accumulate(slowness.begin(), slowness.end(), std::int64_t{0})) /
      static_cast<double>(slowness.size());
  const double slower = static_cast<double>(*slowest) / mean;
  const std::string why =
      slower < 1.05 ? "all stages are about equally fast"
                    : fmt::format("stage {} takes {:.2f} times as long for its blocks as the mean of all",
                                  slowest - slowness.begin(), slower);
  const std::vector<int>& cut = balancing.cuts.back();
  const auto milliseconds = [](std::int64_t ns) { return static_cast<double>(ns) * 1e-6; };
  return fmt::format(
      "{}: the cut becomes {} in {} step{} from step {} on; a step of {:.4g} ms should take {:.4g} ms", why,
      fmt::join(cut.begin() + 1, cut.end() - 1, " "), balancing.cuts.size(),
      balancing.cuts.size() == 1 ? "" : "s", balancing.first_step, milliseconds(balancing.before),
      milliseconds(balancing.after));
}

}  // namespace mindpipe
