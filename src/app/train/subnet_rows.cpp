#include "app/train/subnet_rows.h"

#include <map>

namespace mindpipe {

SubnetRows subnet_rows(Worker& worker, const TraceClock& clock) {
  SubnetRows rows;
  std::map<std::int64_t, int> number_of;  // by place in the whole list
  std::vector<Recorder::Times>& step = rows.times.steps.emplace_back();
  for (const KeptAction& kept : worker.subnets()->kept()->actions()) {
    number_of[kept.place] = static_cast<int>(rows.list.size());
    std::vector<int> after;
    for (const int before : kept.action.after)
      if (const auto found = number_of.find(kept.place - before); found != number_of.end())
        after.push_back(found->second);
    rows.list.push_back(kept.action);
    rows.list.back().after = std::move(after);
    step.push_back({clock.shown(kept.times.start), clock.shown(kept.times.end)});
  }
  rows.times.sums.emplace_back();  // of a list that grows nobody knows which pass they ran in
  rows.times.host.emplace_back();
  rows.times.pings = clock.pings();
  return rows;
}

}  // namespace mindpipe
