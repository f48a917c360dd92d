#include "trace/trace_works.h"

#include <map>

namespace mindpipe {

TraceWorks::TraceWorks(const ReplayGraph& graph) {
  std::map<Work, int> numbers;
  of_.assign(graph.actions(), -1);
  for (int action = 0; action < graph.actions(); ++action) {
    const Action& what = graph.at(action);
    if (!is_work(what)) continue;
    const Work work{graph.stage_of(action), what.kind, what.chunk, what.first, what.last, what.unit};
    const auto [found, is_new] = numbers.try_emplace(work, count());
    if (is_new) all_.push_back(work);
    of_[action] = found->second;
  }
  actions_.resize(static_cast<std::size_t>(graph.ranks()) * all_.size());
  for (int action = 0; action < graph.actions(); ++action)
    if (of_[action] >= 0) actions_[place(graph.rank_of(action), of_[action])].push_back(action);
}

}  // namespace mindpipe
