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

/// `passed`: what went through an out port, in order. They do not overlap, so whoever held the port while one
/// stood ready has begun before it.
void add_waits_out(const Transfers& passed, TimesByPair& times) {
  for (std::size_t i = 0; i < passed.size(); ++i)
    for (std::size_t j = i; j-- > 0 && passed[j]->left > passed[i]->offered;)
      at(times, passed[i]->transfer.traffic, passed[j]->transfer.traffic) +=
          passed[j]->left - std::max(begin_of(*passed[j]), passed[i]->offered);
}

/// `passed`: what left for an in port, in order.
void add_waits_in(const Transfers& passed, TimesByPair& times) {
  for (std::size_t i = 0; i < passed.size(); ++i) {
    const std::int64_t late = passed[i]->arrived - passed[i]->left;
    if (late <= 0) continue;
    std::int64_t others = 0;
    std::size_t first = i;
    while (first > 0 && passed[first - 1]->left > begin_of(*passed[i]))
      others += passed[--first]->transfer.takes;
    for (std::size_t j = first; j < i && others > 0; ++j)
      at(times, passed[i]->transfer.traffic, passed[j]->transfer.traffic) +=
          late * passed[j]->transfer.takes / others;
  }
}

}  // namespace

TimesByPair waits_at_ports(std::span<const Ports::Left> transfers) {
  std::map<PortKey, Transfers> out, in;
  for (const Ports::Left& one : transfers) {
    out[{one.transfer.from, one.transfer.level}].push_back(&one);
    in[{one.transfer.to, one.transfer.level}].push_back(&one);
  }
  TimesByPair times{};
  for (auto* ports : {&out, &in})
    for (auto& [port, passed] : *ports) {
      std::stable_sort(passed.begin(), passed.end(),
                       [](const Ports::Left* a, const Ports::Left* b) { return a->left < b->left; });
      if (ports == &out) add_waits_out(passed, times);
      else add_waits_in(passed, times);
    }
  return times;
}

}  // namespace mindpipe
