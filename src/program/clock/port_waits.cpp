#include "program/clock/port_waits.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace mindpipe {
namespace {

using Transfers = std::vector<const Ports::Left*>;
using PortKey = std::pair<int, Level>;

std::int64_t begin_of(const Ports::Left& one) { return one.left - one.transfer.takes; }

std::int64_t longest_of(const Transfers& passed) {
  std::int64_t longest = 0;
  for (const Ports::Left* one : passed) longest = std::max(longest, one->transfer.takes);
  return longest;
}

/// `passed`: what went through an out port. Whoever held the port while one stood ready has begun before it.
/// In a plan they do not overlap; in a trace they may, and each moment counts once.
void see_waits_out(Transfers& passed, const SeeWait& see) {
  std::stable_sort(passed.begin(), passed.end(),
                   [](const Ports::Left* a, const Ports::Left* b) { return begin_of(*a) < begin_of(*b); });
  const std::int64_t longest = longest_of(passed);
  for (std::size_t i = 0; i < passed.size(); ++i) {
    std::int64_t until = begin_of(*passed[i]);
    for (std::size_t j = i; j-- > 0 && begin_of(*passed[j]) + longest > passed[i]->offered;) {
      const std::int64_t from = std::max(begin_of(*passed[j]), passed[i]->offered),
                         to = std::min(passed[j]->left, until);
      if (from >= to) continue;
      see(*passed[i], *passed[j], to - from);
      until = from;
    }
  }
}

/// `passed`: what left for an in port. What one lost there it lost to those that left for it meanwhile, and
/// in a trace to those that were under way, too; the rest to nobody.
void see_waits_in(Transfers& passed, const SeeWait& see) {
  std::stable_sort(passed.begin(), passed.end(),
                   [](const Ports::Left* a, const Ports::Left* b) { return a->left < b->left; });
  const std::int64_t longest = longest_of(passed);
  for (std::size_t i = 0; i < passed.size(); ++i) {
    const std::int64_t begin = begin_of(*passed[i]), arrived = passed[i]->arrived,
                       late = arrived - passed[i]->left;
    if (late <= 0) continue;
    std::int64_t others = 0;
    std::size_t first = i;
    while (first > 0 && passed[first - 1]->left > begin) others += passed[--first]->transfer.takes;
    const std::int64_t lost = std::min(late, others);
    for (std::size_t j = first; j < i && others > 0; ++j)
      see(*passed[i], *passed[j], lost * passed[j]->transfer.takes / others);
    std::int64_t rest = late - lost;
    for (std::size_t j = i + 1; j < passed.size() && rest > 0 && passed[j]->left - longest < arrived; ++j) {
      const std::int64_t beside = std::min(rest, arrived - std::max(begin, begin_of(*passed[j])));
      if (beside <= 0) continue;
      see(*passed[i], *passed[j], beside);
      rest -= beside;
    }
  }
}

}  // namespace

void each_wait_at_ports(std::span<const Ports::Left> transfers, const SeeWait& see) {
  std::map<PortKey, Transfers> out, in;
  for (const Ports::Left& one : transfers) {
    out[{one.transfer.from, one.transfer.level}].push_back(&one);
    in[{one.transfer.to, one.transfer.level}].push_back(&one);
  }
  for (auto& [port, passed] : out) see_waits_out(passed, see);
  for (auto& [port, passed] : in) see_waits_in(passed, see);
}

TimesByPair waits_at_ports(std::span<const Ports::Left> transfers) {
  TimesByPair times{};
  each_wait_at_ports(transfers, [&](const Ports::Left& waits, const Ports::Left& holds, std::int64_t time) {
    at(times, waits.transfer.traffic, holds.transfer.traffic) += time;
  });
  return times;
}

}  // namespace mindpipe
