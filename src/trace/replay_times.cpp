#include "trace/replay_times.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "core/middle.h"

namespace mindpipe {
namespace {

/// Takes apart what a trace has recorded.
class Measuring {
 public:
  Measuring(const StepTrace& trace, const ReplayGraph& graph, std::int64_t bound)
      : trace_(trace), graph_(graph), bound_(bound) {}

  ReplayTimes measure() {
    find_sums();
    std::int64_t begin = trace_.ranks.front().steps.front().front().start;
    for (const RankTimes& rank : trace_.ranks)
      for (const Recorder::Times& action : rank.steps.front()) begin = std::min(begin, action.start);
    free_.assign(trace_.ranks.size(), begin);
    for (step_ = 0; step_ < trace_.steps.size(); ++step_) {
      ReplayRow& row = times_.rows.emplace_back();
      row.lag.resize(graph_.actions());
      row.lasts.resize(graph_.actions());
      row.eager.resize(graph_.actions());
      row.sums.resize(times_.sums_of.back());
      for (int action = 0; action < graph_.actions(); ++action) measure(action, row);
      for (std::size_t rank = 0; rank < free_.size(); ++rank)
        for (const Recorder::Times& action : trace_.ranks[rank].steps[step_])
          free_[rank] = std::max(free_[rank], action.end);
    }
    return std::move(times_);
  }

 private:
  const Recorder::Times& at(int action) const {
    return trace_.ranks[graph_.rank_of(action)].steps[step_][graph_.index_of(action)];
  }

  /// Sums whose times lie within their pass, on all ranks that share it in every step alike.
  void find_sums() {
    std::vector<int> counts(graph_.actions(), 0);
    std::vector<char> sound(graph_.actions(), 1);
    for (std::size_t rank = 0; rank < trace_.ranks.size(); ++rank)
      for (std::size_t step = 0; step < trace_.steps.size(); ++step) {
        const RankTimes& times = trace_.ranks[rank];
        std::vector<int> found(times.steps[step].size(), 0);
        std::vector<std::int64_t> last(found.size(), 0);
        for (const TracedSum& sum : times.sums[step]) {
          const int action = graph_.first_of(static_cast<int>(rank)) + sum.action;
          const Recorder::Times& pass = times.steps[step][sum.action];
          if (sum.start < std::max(pass.start, last[sum.action]) || sum.end > pass.end ||
              is_communication(graph_.at(action)))
            sound[action] = 0;
          last[sum.action] = sum.end;
          ++found[sum.action];
        }
        for (std::size_t index = 0; index < found.size(); ++index) {
          const int action = graph_.first_of(static_cast<int>(rank)) + static_cast<int>(index);
          if (step > 0 && counts[action] != found[index]) sound[action] = 0;
          counts[action] = found[index];
        }
      }
    times_.sums_of.assign(1, 0);
    for (int action = 0; action < graph_.actions(); ++action) {
      bool cut = true;
      for (int tensor = 0; tensor < graph_.grid().tensor; ++tensor) {
        const int other = graph_.sharer(action, tensor);
        cut = cut && sound[other] != 0 && counts[other] == counts[action];
      }
      times_.sums_of.push_back(times_.sums_of.back() + (cut ? counts[action] : 0));
    }
    place_sums();
  }

  /// Where the sums of each cut pass stand in a rank's record of each step.
  void place_sums() {
    sums_.assign(trace_.steps.size(), std::vector<const TracedSum*>(times_.sums_of.back()));
    for (std::size_t rank = 0; rank < trace_.ranks.size(); ++rank)
      for (std::size_t step = 0; step < trace_.steps.size(); ++step) {
        std::vector<int> next(trace_.ranks[rank].steps[step].size(), 0);
        for (const TracedSum& sum : trace_.ranks[rank].sums[step]) {
          const int action = graph_.first_of(static_cast<int>(rank)) + sum.action;
          if (next[sum.action] < times_.sums(action))
            sums_[step][times_.sums_of[action] + next[sum.action]++] = &sum;
        }
      }
  }

  void violates(int action, std::int64_t by, std::int64_t when, const char* how) {
    if (by <= bound_) return;
    Violations& all = times_.violations;
    ++all.count;
    all.worst = std::max(all.worst, by);
    if (!all.first.empty() && when >= first_violation_) return;
    first_violation_ = when;
    all.first = fmt::format("in step {} the {} {} {:.3f} us before {}", trace_.steps[step_],
                            graph_.name_of(action), how, static_cast<double>(by) / 1e3,
                            how[0] == 'b' ? "what it waited for had ended" : "all of its members had begun");
  }

  /// The latest end that an action waited for.
  std::int64_t latest_cause(int action) const {
    const ListWait& wait = graph_.wait_of(action);
    const int first = action - graph_.index_of(action);
    std::int64_t latest = free_[graph_.rank_of(action)];
    for (const int before : wait.ended) latest = std::max(latest, at(first + before).end);
    if (wait.begun >= 0) latest = std::max(latest, at(first + wait.begun).start);
    return latest;
  }

  void measure(int action, ReplayRow& row) {
    const Recorder::Times& own = at(action);
    const std::int64_t cause = latest_cause(action);
    row.lag[action] = std::max<std::int64_t>(0, own.start - cause);
    violates(action, cause - own.start, own.start, "began");
    row.lasts[action] = own.end - own.start;
    if (times_.sums(action) > 0) return cut(action, row);
    const int meeting = graph_.meeting_of(action);
    if (meeting < 0) return;
    std::int64_t posted = own.start;
    for (const int member : graph_.members(meeting)) posted = std::max(posted, at(member).start);
    // A rank whose share is empty waits for nobody in an exchange or a sum of gradients.
    const Action& what = graph_.at(action);
    const bool may_be_empty = what.payload == Payload::unit_gradient || what.group == Members::data;
    row.eager[action] = (sends(what) || may_be_empty) && own.end < posted;
    if (row.eager[action]) return;
    row.lasts[action] = std::max<std::int64_t>(0, own.end - posted);
    violates(action, posted - own.end, own.end, "ended");
  }

  /// Takes a pass apart at its tensor sums.
  void cut(int action, ReplayRow& row) {
    std::int64_t free = at(action).start;
    for (int sum = 0; sum < times_.sums(action); ++sum) {
      const TracedSum& own = *sums_[step_][times_.sums_of[action] + sum];
      std::int64_t met = own.start;
      for (int tensor = 0; tensor < graph_.grid().tensor; ++tensor)
        met = std::max(met, sums_[step_][times_.sums_of[graph_.sharer(action, tensor)] + sum]->start);
      row.sums[times_.sums_of[action] + sum] = {own.start - free, std::max<std::int64_t>(0, own.end - met)};
      violates(action, met - own.end, own.end, "ended a tensor sum");
      free = own.end;
    }
    row.lasts[action] = at(action).end - free;
  }

  const StepTrace& trace_;
  const ReplayGraph& graph_;
  std::int64_t bound_, first_violation_ = 0;
  ReplayTimes times_;
  std::size_t step_ = 0;
  std::vector<std::int64_t> free_;  ///< when each rank's step before had ended
  std::vector<std::vector<const TracedSum*>> sums_;
};

}  // namespace

ReplayTimes measured_times(const StepTrace& trace, const ReplayGraph& graph, std::int64_t bound) {
  return Measuring(trace, graph, bound).measure();
}

namespace {

/// Gives the median over some rows of each of many numbers, `number_in(row, i)`: sorts those of neighbours
/// side by side, as the processor's vectors do at once.
template <class NumberIn, class Give>
void medians_over(const std::vector<int>& rows, std::size_t count, const NumberIn& number_in,
                  const Give& give) {
  constexpr std::size_t width = 64;
  const std::size_t height = rows.size();
  std::vector<std::array<std::int64_t, width>> sorted(height);
  for (std::size_t first = 0; first < count; first += width) {
    const std::size_t here = std::min(width, count - first);
    for (std::size_t k = 0; k < height; ++k)
      for (std::size_t i = 0; i < here; ++i) sorted[k][i] = number_in(rows[k], first + i);
    for (std::size_t turn = 0; turn < height; ++turn)
      for (std::size_t k = turn % 2; k + 1 < height; k += 2)
        for (std::size_t i = 0; i < width; ++i) {
          const std::int64_t one = sorted[k][i], other = sorted[k + 1][i];
          sorted[k][i] = std::min(one, other);
          sorted[k + 1][i] = std::max(one, other);
        }
    for (std::size_t i = 0; i < here; ++i)
      give(first + i, (sorted[(height - 1) / 2][i] + sorted[height / 2][i] + 1) / 2);
  }
}

/// What comes between steps is unknown of the first one.
void expect_between_steps(const ReplayTimes& measured, const ReplayGraph& graph, const std::vector<int>& rows,
                          ReplayRow& expected) {
  for (int action = 0; action < graph.actions(); ++action) {
    if (!graph.wait_of(action).is_for_nothing()) continue;
    std::vector<double> lags;
    for (const int row : rows)
      if (row > 0 || rows.size() == 1) lags.push_back(static_cast<double>(measured.rows[row].lag[action]));
    expected.lag[action] = static_cast<std::int64_t>(median_of(lags) + 0.5);
  }
}

}  // namespace

ReplayTimes expected_times(const ReplayTimes& measured, const ReplayGraph& graph, std::vector<int> rows) {
  if (rows.empty()) {
    rows.resize(measured.rows.size());
    std::iota(rows.begin(), rows.end(), 0);
  }
  const auto actions = static_cast<std::size_t>(graph.actions()),
             sums = static_cast<std::size_t>(measured.sums_of.back());
  ReplayTimes expected{.sums_of = measured.sums_of};
  ReplayRow& all = expected.rows.emplace_back();
  all.lag.resize(actions);
  all.lasts.resize(actions);
  all.sums.resize(sums);
  medians_over(
      rows, actions, [&](int row, std::size_t i) { return measured.rows[row].lag[i]; },
      [&](std::size_t i, std::int64_t middle) { all.lag[i] = middle; });
  medians_over(
      rows, actions, [&](int row, std::size_t i) { return measured.rows[row].lasts[i]; },
      [&](std::size_t i, std::int64_t middle) { all.lasts[i] = middle; });
  medians_over(
      rows, sums, [&](int row, std::size_t i) { return measured.rows[row].sums[i].before; },
      [&](std::size_t i, std::int64_t middle) { all.sums[i].before = middle; });
  medians_over(
      rows, sums, [&](int row, std::size_t i) { return measured.rows[row].sums[i].takes; },
      [&](std::size_t i, std::int64_t middle) { all.sums[i].takes = middle; });
  std::vector<int> eager(actions, 0);
  for (const int row : rows)
    for (std::size_t i = 0; i < actions; ++i) eager[i] += measured.rows[row].eager[i];
  for (const int members : eager) all.eager.push_back(2 * members >= static_cast<int>(rows.size()));
  expect_between_steps(measured, graph, rows, all);
  return expected;
}

ReplayTimes plain_averages(const StepTrace& trace, const ReplayTimes& measured, const ReplayGraph& graph,
                           const std::vector<int>& steps) {
  const auto actions = static_cast<std::size_t>(graph.actions());
  ReplayTimes averages{.sums_of = std::vector<int>(actions + 1, 0)};
  ReplayRow& row = averages.rows.emplace_back();
  row.lag.assign(actions, 0);
  row.lasts.assign(actions, 0);
  row.eager.assign(actions, 0);
  const auto count = std::ssize(steps);
  for (int action = 0; action < graph.actions(); ++action) {
    for (const int step : steps) {
      const Recorder::Times& own = trace.ranks[graph.rank_of(action)].steps[step][graph.index_of(action)];
      row.lag[action] += measured.rows[step].lag[action];
      row.lasts[action] += own.end - own.start;
    }
    row.lag[action] /= count;
    row.lasts[action] /= count;
  }
  return averages;
}

}  // namespace mindpipe
