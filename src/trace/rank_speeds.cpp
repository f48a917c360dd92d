#include "trace/rank_speeds.h"

#include <algorithm>
#include <cmath>

#include "core/middle.h"

namespace mindpipe {

double spread_of(const std::vector<double>& values) {
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  const double count = static_cast<double>(values.size()), mean = count > 0 ? sum / count : 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return count > 1 ? std::sqrt(squares / (count - 1)) : 0;
}

double beyond_scatter(double spread, double count) {
  constexpr double sure = 3, of_median = 1.2533;
  return sure * of_median * spread / std::sqrt(std::max(1.0, count));
}

RankSpeeds::RankSpeeds(const WorkModel& model) : model_(model) {
  count_works();
  compare_ranks();
  find_noise();
}

void RankSpeeds::count_works() {
  const ReplayGraph& graph = model_.graph();
  counts_.assign(graph.ranks(), std::vector<int>(model_.works().count(), 0));
  for (int action = 0; action < graph.actions(); ++action)
    if (model_.works().of(action) >= 0) ++counts_[graph.rank_of(action)][model_.works().of(action)];
}

void RankSpeeds::compare_ranks() {
  of_step_.assign(model_.graph().ranks(), std::vector<double>(model_.steps(), 1.0));
  usual_.assign(model_.graph().ranks(), 1.0);
  if (!model_.compares()) return;
  for (std::size_t step = 0; step < model_.steps(); ++step) {
    std::vector<double> weight(model_.graph().ranks(), 0.0), weighted(model_.graph().ranks(), 0.0);
    for (int work = 0; work < model_.works().count(); ++work) {
      std::vector<double> of_peers;
      for (int rank = 0; rank < model_.graph().ranks(); ++rank)
        if (stage_of(rank) == model_.works().at(work).stage)
          of_peers.push_back(model_.middle(step, rank, work));
      const double peers = model_.has_peers() ? lower_middle(of_peers) : model_.G(work);
      for (int rank = 0; rank < model_.graph().ranks(); ++rank) {
        if (stage_of(rank) != model_.works().at(work).stage) continue;
        const double counts = model_.G(work) * static_cast<double>(count(rank, work));
        weighted[rank] += counts * model_.middle(step, rank, work) / peers;
        weight[rank] += counts;
      }
    }
    for (int rank = 0; rank < model_.graph().ranks(); ++rank)
      if (weight[rank] > 0) of_step_[rank][step] = weighted[rank] / weight[rank];
    if (model_.has_peers()) continue;
    std::vector<double> all;
    for (const std::vector<double>& one : of_step_) all.push_back(one[step]);
    const double middle = lower_middle(all);
    for (std::vector<double>& one : of_step_) one[step] /= middle;
  }
  for (int rank = 0; rank < model_.graph().ranks(); ++rank) {
    std::vector<double> all = of_step_[rank];
    usual_[rank] = median_of(all);
  }
}

double RankSpeeds::beyond_noise(double noise, int rank, std::size_t over) const {
  return 1 + beyond_scatter(noise, static_cast<double>(passes_[rank]) * static_cast<double>(over));
}

bool RankSpeeds::is_slow(int rank) const {
  const double factor = usual_[rank];
  const auto slow = std::count_if(of_step_[rank].begin(), of_step_[rank].end(),
                                  [](double of_step) { return of_step >= slower; });
  const bool is_noise = noise_[rank] >= more_spread * lower_middle(noise_) && factor - 1 < noise_[rank];
  return factor >= std::max(slower, beyond_noise(scatter_[rank], rank, model_.steps())) && !is_noise &&
         static_cast<double>(slow) >= in_most_steps * static_cast<double>(model_.steps());
}

void RankSpeeds::find_noise() {
  const ReplayGraph& graph = model_.graph();
  for (int rank = 0; rank < graph.ranks(); ++rank) {
    std::vector<double> spreads, all;
    std::size_t passes = 0;
    for (std::size_t step = 0; step < model_.steps(); ++step) {
      std::vector<double> rest;
      for (int action = graph.first_of(rank); action < graph.first_of(rank + 1); ++action) {
        const int work = model_.works().of(action);
        if (work < 0 || !is_pass(graph.at(action))) continue;
        all.push_back(std::log(model_.computed(step, action) / (model_.W(rank, work) * model_.G(work))));
        rest.push_back(all.back() - std::log(model_.M(step, action)));
      }
      passes = rest.size();
      spreads.push_back(spread_of(rest));
    }
    passes_.push_back(static_cast<int>(passes));
    noise_.push_back(median_of(spreads));
    scatter_.push_back(spread_of(all));
  }
}

}  // namespace mindpipe
