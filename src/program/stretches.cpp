#include "program/stretches.h"

#include "program/checker.h"

namespace mindpipe {

Stretches::Stretches(const Outline& outline, const Network& network, const SubnetRules& rules,
                     const std::vector<int>& ranks)
    : planner_(outline, network, rules), starts_(outline) {
  for (const int rank : ranks)
    ranks_.push_back({StretchWriter(outline, rank), StretchCheck(outline, rules, rank)});
}

std::vector<ListStretch> Stretches::next(std::span<const Subnet> more, bool last) {
  const std::int64_t oldest = planner_.oldest();
  const std::vector<PlannedStart> starts = planner_.next(more, last);
  require_sound(starts_.check(starts, oldest, planner_.known()));
  std::vector<ListStretch> stretches;
  for (Rank& rank : ranks_) {
    stretches.push_back(rank.writer.write(starts));
    require_sound(rank.check.check(stretches.back(), more, last));
  }
  return stretches;
}

}  // namespace mindpipe
