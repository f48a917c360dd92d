#include "trace/replay_times.h"

#include <fmt/core.h>

#include <algorithm>
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

ReplayTimes expected_times(const ReplayTimes& measured, const ReplayGraph& graph, std::vector<int> rows) {
  if (rows.empty()) {
    rows.resize(measured.rows.size());
    std::iota(rows.begin(), rows.end(), 0);
  }
  std::vector<double> values;
  const auto median = [&](bool without_first, const auto& number) {
    values.clear();
    for (const int row : rows)
      if (!without_first || row > 0 || rows.size() == 1)
        values.push_back(static_cast<double>(number(measured.rows[row])));
    return static_cast<std::int64_t>(median_of(values) + 0.5);
  };
  ReplayTimes expected{.sums_of = measured.sums_of};
  ReplayRow& all = expected.rows.emplace_back();
  for (auto* times : {&all.lag, &all.lasts}) times->reserve(static_cast<std::size_t>(graph.actions()));
  for (int action = 0; action < graph.actions(); ++action) {
    const ListWait& wait = graph.wait_of(action);
    const bool follows_step = wait.ended.empty() && wait.begun < 0;
    all.lag.push_back(median(follows_step, [&](const ReplayRow& row) { return row.lag[action]; }));
    all.lasts.push_back(median(false, [&](const ReplayRow& row) { return row.lasts[action]; }));
    const auto eager = std::count_if(rows.begin(), rows.end(),
                                     [&](int row) { return measured.rows[row].eager[action] != 0; });
    all.eager.push_back(2 * eager >= std::ssize(rows));
  }
  for (int sum = 0; sum < measured.sums_of.back(); ++sum)
    all.sums.push_back({median(false, [&](const ReplayRow& row) { return row.sums[sum].before; }),
                        median(false, [&](const ReplayRow& row) { return row.sums[sum].takes; })});
  return expected;
}

}  // namespace mindpipe
