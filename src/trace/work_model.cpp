#include "trace/work_model.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/middle.h"

namespace mindpipe {

std::int64_t computed_by(const ReplayRow& row, const ReplayTimes& times, int action) {
  std::int64_t computed = row.lasts[action];
  for (int sum = times.sums_of[action]; sum < times.sums_of[action + 1]; ++sum)
    computed += row.sums[sum].before;
  return computed;
}

void scale_computed(ReplayRow& row, const ReplayTimes& times, int action, double factor) {
  const auto scale = [&](std::int64_t& time) { time = std::llround(static_cast<double>(time) * factor); };
  scale(row.lasts[action]);
  for (int sum = times.sums_of[action]; sum < times.sums_of[action + 1]; ++sum) scale(row.sums[sum].before);
}

WorkModel::WorkModel(const ReplayGraph& graph, const ReplayTimes& measured, const Durations& paper)
    : graph_(graph), works_(graph) {
  for (int action = 0; action < graph.actions(); ++action)
    if (works_.of(action) >= 0) micro_batches_ = std::max(micro_batches_, graph.at(action).micro_batch + 1);
  for (const ReplayRow& row : measured.rows) {
    std::vector<double>& step = computed_.emplace_back(graph.actions(), 0.0);
    for (int action = 0; action < graph.actions(); ++action)
      if (works_.of(action) >= 0)
        step[action] = static_cast<double>(std::max<std::int64_t>(1, computed_by(row, measured, action)));
  }
  find_middles();
  compare_ranks();
  if (!has_peers()) compare_with_paper(paper);
  find_micro_batches();
  find_wholes();
}

void WorkModel::find_middles() {
  for (const std::vector<double>& step : computed_) {
    std::vector<double>& middles = middles_.emplace_back(works_.actions().size(), 0.0);
    for (std::size_t place = 0; place < works_.actions().size(); ++place) {
      std::vector<double> times;
      for (const int action : works_.actions()[place]) times.push_back(step[action]);
      middles[place] = median_of(times);
    }
  }
}

double WorkModel::middle(std::size_t step, int rank, int work) const {
  return middles_[step][works_.place(rank, work)];
}

void WorkModel::compare_ranks() {
  of_rank_.assign(works_.actions().size(), 1.0);
  compares_ = has_peers();
  for (int work = 0; work < works_.count(); ++work) {
    std::vector<double> all;
    std::map<int, std::vector<double>> factors;
    for (std::size_t step = 0; step < steps(); ++step) {
      std::vector<double> of_step;
      for (int rank = 0; rank < graph_.ranks(); ++rank)
        if (coord_at(graph_.grid(), rank).pipeline == works_.at(work).stage)
          of_step.push_back(middle(step, rank, work));
      all.insert(all.end(), of_step.begin(), of_step.end());
      const double peers = median_of(of_step);
      for (int rank = 0; rank < graph_.ranks(); ++rank)
        if (coord_at(graph_.grid(), rank).pipeline == works_.at(work).stage)
          factors[rank].push_back(middle(step, rank, work) / peers);
    }
    of_stage_.push_back(median_of(all));
    for (auto& [rank, factor] : factors) of_rank_[works_.place(rank, work)] = median_of(factor);
  }
}

/// A lone rank of a stage is as slow as what it measured is of what it would take on paper, beside the other
/// stages' median of that.
void WorkModel::compare_with_paper(const Durations& paper) {
  if (paper.size() < 3 || graph_.ranks() != static_cast<int>(paper.size())) return;
  std::vector<double> ratios(paper.size());
  for (int rank = 0; rank < graph_.ranks(); ++rank) {
    double measured = 0, priced = 0;
    for (int action = graph_.first_of(rank); action < graph_.first_of(rank + 1); ++action) {
      if (works_.of(action) < 0 || !is_pass(graph_.at(action))) continue;
      measured += of_stage_[works_.of(action)];
      priced += static_cast<double>(paper[rank][graph_.index_of(action)]);
    }
    if (priced <= 0) return;
    ratios[rank] = measured / priced;
  }
  std::vector<double> sorted = ratios;
  const double middle = median_of(sorted);
  compares_ = true;
  for (int work = 0; work < works_.count(); ++work) {
    const int rank = works_.at(work).stage;
    of_rank_[works_.place(rank, work)] = ratios[rank] / middle;
    of_stage_[work] /= ratios[rank] / middle;
  }
}

int WorkModel::micro_batch_place(int action) const {
  return coord_at(graph_.grid(), graph_.rank_of(action)).data * micro_batches_ +
         graph_.at(action).micro_batch;
}

double WorkModel::M(std::size_t step, int action) const {
  return graph_.at(action).micro_batch < 0 ? 1 : of_micro_batch_[step][micro_batch_place(action)];
}

void WorkModel::find_micro_batches() {
  double sum = 0;
  std::size_t count = 0;
  for (std::size_t step = 0; step < steps(); ++step) {
    const auto places = static_cast<std::size_t>(graph_.grid().data * micro_batches_);
    std::vector<double> logs(places, 0.0), counts(places, 0.0);
    for (int action = 0; action < graph_.actions(); ++action) {
      if (works_.of(action) < 0 || graph_.at(action).micro_batch < 0) continue;
      const int work = works_.of(action);
      logs[micro_batch_place(action)] +=
          std::log(computed(step, action) / (W(graph_.rank_of(action), work) * G(work)));
      counts[micro_batch_place(action)] += 1;
    }
    for (std::size_t place = 0; place < places; ++place) {
      logs[place] = counts[place] > 0 ? std::exp(logs[place] / counts[place]) : 1;
      sum += logs[place];
      ++count;
    }
    of_micro_batch_.push_back(std::move(logs));
  }
  mean_of_micro_batches_ = count > 0 ? sum / static_cast<double>(count) : 1;
}

void WorkModel::find_wholes() {
  std::map<std::tuple<int, ActionKind, int>, std::pair<double, int>> wholes;  // time, blocks
  const auto group = [&](const TraceWorks::Work& work) {
    return std::tuple(work.stage, work.kind, work.chunk);
  };
  for (int number = 0; number < works_.count(); ++number) {
    auto& [time, blocks] = wholes[group(works_.at(number))];
    const int own = works_.at(number).last - works_.at(number).first;
    if (own > blocks && blocks > 0 && own > 1) time = 0;
    if (own >= blocks) time += G(number);
    blocks = std::max(blocks, own);
  }
  // A pass that comes whole stands for its pieces; pieces alone add up.
  std::map<std::pair<ActionKind, int>, std::pair<double, int>> sums;
  const int stages = graph_.grid().pipeline;
  for (const auto& [key, whole] : wholes) {
    auto& [sum, count] = sums[{std::get<1>(key), std::get<2>(key) / stages}];
    sum += whole.first;
    ++count;
  }
  for (const TraceWorks::Work& work : works_.all()) {
    whole_.push_back(wholes[group(work)].first);
    const auto& [sum, count] = sums[{work.kind, work.chunk / stages}];
    mean_whole_.push_back(is_pass(action_of(work.kind)) ? sum / count : whole_.back());
  }
}

}  // namespace mindpipe
