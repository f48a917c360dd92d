#include "trace/partial_report.h"

#include <algorithm>

#include "core/middle.h"
#include "core/text.h"
#include "trace/causes.h"
#include "trace/rank_speeds.h"

namespace mindpipe {
namespace {

constexpr std::size_t most_ranks = 12;

/// What is there of a trace's times. A missing rank computes what its peers do, or what its prices on paper
/// make of it beside those of others, so that it neither is slow nor makes others so.
class Present {
 public:
  Present(const StepTrace& trace, const ReplayGraph& graph) : trace_(trace), graph_(graph) {
    times_.sums_of.assign(graph.actions() + 1, 0);
    for (std::size_t step = 0; step < trace.steps.size(); ++step) {
      ReplayRow& row = times_.rows.emplace_back();
      row.lasts.assign(graph.actions(), 0);
      for (int rank = 0; rank < graph.ranks(); ++rank)
        if (has(rank)) take(row, step, rank);
      for (int rank = 0; rank < graph.ranks(); ++rank)
        if (!has(rank)) fill_in(row, rank);
    }
  }

  bool has(int rank) const { return !trace_.ranks[rank].steps.empty(); }
  const ReplayTimes& times() const { return times_; }

  /// Whether a rank can be compared: with others of its stage that are there, whose sums inside passes are
  /// known; a lone replica with other stages.
  bool compares(int rank) const {
    const Coord own = coord_at(graph_.grid(), rank);
    int others = 0;
    for (int other = 0; other < graph_.ranks(); ++other)
      others += other != rank && has(other) &&
                (is_lone() || coord_at(graph_.grid(), other).pipeline == own.pipeline);
    const bool sums_are_known = graph_.grid().tensor == 1 || !trace_.operations.empty();
    return has(rank) && sums_are_known && others >= (is_lone() ? 2 : 1);
  }

  /// Nanoseconds that a rank computes in a step, by the median over the steps.
  double computes(int rank) const {
    std::vector<double> of_steps;
    for (const ReplayRow& row : times_.rows) {
      double all = 0;
      for (int action = graph_.first_of(rank); action < graph_.first_of(rank + 1); ++action)
        if (is_work(graph_.at(action))) all += static_cast<double>(row.lasts[action]);
      of_steps.push_back(all);
    }
    return median_of(of_steps);
  }

  /// Nanoseconds of a step: every rank's steps end as often as those of all others.
  std::int64_t period() const {
    std::vector<double> periods;
    for (const RankTimes& rank : trace_.ranks) {
      if (rank.steps.empty() || rank.steps.front().empty()) continue;
      const auto end_of = [](const std::vector<Recorder::Times>& step) {
        return std::max_element(step.begin(), step.end(),
                                [](const auto& a, const auto& b) { return a.end < b.end; })
            ->end;
      };
      const std::int64_t steps = std::ssize(rank.steps);
      const std::int64_t all = steps > 1 ? end_of(rank.steps.back()) - end_of(rank.steps.front())
                                         : end_of(rank.steps.back()) - rank.steps.front().front().start;
      periods.push_back(static_cast<double>(all) / static_cast<double>(std::max<std::int64_t>(1, steps - 1)));
    }
    return static_cast<std::int64_t>(median_of(periods));
  }

 private:
  bool is_lone() const { return graph_.grid().data * graph_.grid().tensor == 1; }

  /// What a rank computed in a step: passes without their sums, in which it may have waited for others.
  void take(ReplayRow& row, std::size_t step, int rank) const {
    const int first = graph_.first_of(rank);
    const std::vector<Recorder::Times>& own = trace_.ranks[rank].steps[step];
    for (std::size_t index = 0; index < own.size(); ++index)
      row.lasts[first + static_cast<int>(index)] = own[index].end - own[index].start;
    for (const TracedSum& sum : trace_.ranks[rank].sums[step])
      row.lasts[first + sum.action] =
          std::max<std::int64_t>(0, row.lasts[first + sum.action] - (sum.end - sum.start));
  }

  void fill_in(ReplayRow& row, int rank) const {
    const int first = graph_.first_of(rank), stage = graph_.stage_of(first);
    std::vector<double> beside_paper;
    for (int action = 0; action < graph_.actions(); ++action)
      if (has(graph_.rank_of(action)) && is_pass(graph_.at(action)) && paper(action) > 0)
        beside_paper.push_back(static_cast<double>(row.lasts[action]) / paper(action));
    const double factor = median_of(beside_paper);
    for (int action = first; action < graph_.first_of(rank + 1); ++action) {
      std::vector<double> of_peers;
      for (int other = 0; other < graph_.ranks(); ++other)
        if (has(other) && coord_at(graph_.grid(), other).pipeline == stage)
          of_peers.push_back(static_cast<double>(row.lasts[graph_.first_of(other) + action - first]));
      row.lasts[action] = std::llround(of_peers.empty() ? factor * paper(action) : lower_middle(of_peers));
    }
  }
  double paper(int action) const {
    return static_cast<double>(trace_.paper[graph_.stage_of(action)][graph_.index_of(action)]);
  }

  const StepTrace& trace_;
  const ReplayGraph& graph_;
  ReplayTimes times_;
};

std::string names_of(const std::vector<int>& ranks, const ReplayGraph& graph) {
  std::vector<std::string> names;
  for (const int rank : ranks)
    if (names.size() < most_ranks) names.push_back(graph.name_of_rank(rank));
  if (ranks.size() > most_ranks) names.push_back(fmt::format("{} more", ranks.size() - most_ranks));
  return join(names, ", ");
}

}  // namespace

std::vector<int> missing_ranks(const StepTrace& trace) {
  std::vector<int> missing;
  for (std::size_t rank = 0; rank < trace.ranks.size(); ++rank)
    if (trace.ranks[rank].steps.empty()) missing.push_back(static_cast<int>(rank));
  return missing;
}

std::string partial_report(const StepTrace& trace, const ReplayGraph& graph) {
  const Present present(trace, graph);
  const std::int64_t period = present.period();
  std::string text = fmt::format(
      "steps {} to {} of {} ranks ({}), {}{}\n"
      "the times of {} are missing: who waited for whom is not known, so no step is replayed, and nothing is "
      "said of links, hosts and other programs\n"
      "period {}, by the steps of the ranks that are there\n",
      trace.steps.front(), trace.steps.back(), graph.ranks(), to_string(trace.grid), trace.device,
      trace.injected.empty() ? "" : fmt::format("; injected: {}", trace.injected),
      names_of(missing_ranks(trace), graph), human_seconds(static_cast<double>(period) * 1e-9));
  std::vector<int> there;
  for (int rank = 0; rank < graph.ranks(); ++rank)
    if (present.has(rank)) there.push_back(rank);
  std::stable_sort(there.begin(), there.end(),
                   [&](int a, int b) { return present.computes(a) > present.computes(b); });
  text += "what they compute in a step, the most first\n";
  for (std::size_t place = 0; place < std::min(there.size(), most_ranks); ++place) {
    const double computes = present.computes(there[place]);
    text += fmt::format("  {:<40} {:>12} {:>6.1f} %\n", graph.name_of_rank(there[place]),
                        human_seconds(computes * 1e-9),
                        100 * computes / static_cast<double>(std::max<std::int64_t>(1, period)));
  }
  if (there.size() > most_ranks) text += fmt::format("  and {} more\n", there.size() - most_ranks);
  if (static_cast<int>(trace.steps.size()) < fewest_steps)
    return text + fmt::format("- {} steps are too few to accuse anybody ({} or more; trace a longer run)\n",
                              trace.steps.size(), fewest_steps);
  const WorkModel model(graph, present.times(), trace.is_priced ? trace.paper : Durations());
  const RankSpeeds speeds(model);
  for (const int rank : there)
    if (model.compares() && present.compares(rank) && speeds.is_slow(rank))
      text += fmt::format("- {} computes {:.2f} times as long as its peers; what that costs is not known\n",
                          graph.name_of_rank(rank), speeds.usual(rank));
  return text;
}

}  // namespace mindpipe
