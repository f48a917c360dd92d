#include "trace/micro_batch_lengths.h"

#include <cmath>
#include <set>

namespace mindpipe {

MicroBatchLengths::MicroBatchLengths(const ReplayGraph& graph, const WorkModel& model, int but)
    : graph_(graph) {
  const std::vector<char> is_heard = heard(model, but);
  std::map<Place, std::pair<double, int>> logs;
  for (std::size_t step = 0; step < model.steps(); ++step)
    for (int action = 0; action < graph.actions(); ++action) {
      if (is_heard[action] == 0) continue;
      const int work = model.works().of(action);
      auto& [sum, count] = logs[place(step, action)];
      sum += std::log(model.computed(step, action) / (model.W(graph.rank_of(action), work) * model.G(work)));
      ++count;
    }
  std::map<int, std::pair<double, int>> of_replicas;
  for (const auto& [at, log] : logs) {
    const double length = lengths_[at] = std::exp(log.first / log.second);
    auto& [sum, count] = of_replicas[std::get<1>(at)];
    sum += length;
    ++count;
  }
  for (auto& [at, length] : lengths_) {
    const auto& [sum, count] = of_replicas.at(std::get<1>(at));
    length *= count / sum;
  }
}

double MicroBatchLengths::of(std::size_t step, int action) const {
  const auto found = lengths_.find(place(step, action));
  return found == lengths_.end() ? 1 : found->second;
}

MicroBatchLengths::Place MicroBatchLengths::place(std::size_t step, int action) const {
  return {step, coord_at(graph_.grid(), graph_.rank_of(action)).data, graph_.at(action).micro_batch};
}

std::vector<char> MicroBatchLengths::heard(const WorkModel& model, int but) const {
  std::map<std::pair<int, int>, std::set<int>> of_works;  // micro-batches of a rank's work
  std::size_t most = 0;
  const auto key = [&](int action) { return std::pair(graph_.rank_of(action), model.works().of(action)); };
  const auto may_tell = [&](int action) {
    return model.works().of(action) >= 0 && graph_.at(action).micro_batch >= 0 &&
           graph_.rank_of(action) != but;
  };
  for (int action = 0; action < graph_.actions(); ++action) {
    if (!may_tell(action)) continue;
    std::set<int>& micro_batches = of_works[key(action)];
    micro_batches.insert(graph_.at(action).micro_batch);
    most = std::max(most, micro_batches.size());
  }
  std::vector<char> is_heard(graph_.actions(), 0);
  for (int action = 0; action < graph_.actions(); ++action)
    is_heard[action] = may_tell(action) && of_works.at(key(action)).size() == most ? 1 : 0;
  return is_heard;
}

}  // namespace mindpipe
