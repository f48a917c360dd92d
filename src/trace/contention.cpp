#include "trace/contention.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "core/middle.h"

namespace mindpipe {
namespace {

/// Stretches of time, and how much of any other they cover.
class Covered {
 public:
  void add(std::int64_t begin, std::int64_t end) {
    if (end > begin) all_.push_back({begin, end});
  }
  /// Joins what overlaps; nothing is added any more.
  void join() {
    std::sort(all_.begin(), all_.end());
    std::vector<std::pair<std::int64_t, std::int64_t>> joined;
    for (const auto& [begin, end] : all_) {
      if (!joined.empty() && begin <= joined.back().second)
        joined.back().second = std::max(joined.back().second, end);
      else joined.push_back({begin, end});
    }
    all_ = std::move(joined);
    before_.assign(1, 0);
    for (const auto& [begin, end] : all_) before_.push_back(before_.back() + end - begin);
  }
  std::int64_t within(std::int64_t begin, std::int64_t end) const { return until(end) - until(begin); }

 private:
  std::int64_t until(std::int64_t time) const {
    const auto next = std::upper_bound(all_.begin(), all_.end(), std::pair(time, time),
                                       [](const auto& a, const auto& b) { return a.first < b.first; });
    const auto place = static_cast<std::size_t>(next - all_.begin());
    if (place == 0) return 0;
    return before_[place - 1] + std::min(time, all_[place - 1].second) - all_[place - 1].first;
  }

  std::vector<std::pair<std::int64_t, std::int64_t>> all_;
  std::vector<std::int64_t> before_;
};

/// One transfer: what it took beyond an equal one that met nobody, and its time beside each kind.
template <class Beside>
struct Excess {
  double more;
  const Beside* beside;
};

/// Shares, none below 0 and none above 1, that explain what transfers lost; and how sure each is, in errors.
template <class Beside>
std::pair<std::vector<double>, std::vector<double>> shares_lost(const std::vector<Excess<Beside>>& all,
                                                                const std::vector<bool>& counts) {
  constexpr int turns = 200;
  const std::size_t kinds = counts.size();
  std::vector<double> share(kinds, 0.0), sure(kinds, 0.0), own(kinds, 0.0);
  std::vector<std::vector<double>> both(kinds, std::vector<double>(kinds, 0.0));
  for (const auto& [more, beside] : all)
    for (std::size_t one = 0; one < kinds; ++one) {
      own[one] += more * (*beside)[one];
      for (std::size_t other = 0; other < kinds; ++other)
        both[one][other] += static_cast<double>((*beside)[one]) * (*beside)[other];
    }
  for (int turn = 0; turn < turns; ++turn)
    for (std::size_t one = 0; one < kinds; ++one) {
      if (!counts[one] || both[one][one] <= 0) continue;
      double rest = own[one];
      for (std::size_t other = 0; other < kinds; ++other)
        if (other != one) rest -= both[one][other] * share[other];
      share[one] = std::clamp(rest / both[one][one], 0.0, 1.0);
    }
  double squares = 0;
  for (const auto& [more, beside] : all) {
    double rest = more;
    for (std::size_t one = 0; one < kinds; ++one) rest -= share[one] * (*beside)[one];
    squares += rest * rest;
  }
  for (std::size_t one = 0; one < kinds; ++one)
    if (both[one][one] > 0 && all.size() > kinds)
      sure[one] =
          share[one] / std::sqrt(squares / static_cast<double>(all.size() - kinds) / both[one][one] + 1e-12);
  return {share, sure};
}

}  // namespace

ContentionFit::ContentionFit(const StepTrace& trace, const ReplayGraph& graph, const ReplayTimes& measured)
    : graph_(graph), usual_(graph.actions(), 0) {
  find_overlaps(trace, measured);
  for (const TrafficClass waits : classes) fit(waits, measured);
}

void ContentionFit::find_overlaps(const StepTrace& trace, const ReplayTimes& measured) {
  constexpr std::size_t kinds = classes.size() + 1;
  const auto kind_of = [&](int action) -> std::size_t {
    const Action& what = graph_.at(action);
    if (is_work(what)) return classes.size();
    return static_cast<std::size_t>(std::find(classes.begin(), classes.end(), class_of(what)) -
                                    classes.begin());
  };
  const auto end_of = [&](std::size_t step, int action) {
    return trace.ranks[graph_.rank_of(action)].steps[step][graph_.index_of(action)].end;
  };
  std::vector<std::array<Covered, kinds>> covered(graph_.ranks());
  for (std::size_t step = 0; step < measured.rows.size(); ++step)
    for (int action = 0; action < graph_.actions(); ++action) {
      const bool is_other_sum = !is_work(graph_.at(action)) && kind_of(action) == classes.size();
      const std::int64_t end = end_of(step, action);
      std::int64_t begin = end - measured.rows[step].lasts[action];
      if (is_work(graph_.at(action)))
        begin = trace.ranks[graph_.rank_of(action)].steps[step][graph_.index_of(action)].start;
      if (!is_other_sum) covered[graph_.rank_of(action)][kind_of(action)].add(begin, end);
    }
  for (auto& rank : covered)
    for (Covered& kind : rank) kind.join();
  for (std::size_t step = 0; step < measured.rows.size(); ++step) {
    std::vector<Beside>& row = beside_.emplace_back(graph_.actions(), Beside{});
    for (int action = 0; action < graph_.actions(); ++action) {
      const int meeting = graph_.meeting_of(action);
      if (meeting < 0 || measured.rows[step].eager[action]) continue;
      const std::int64_t end = end_of(step, action), begin = end - measured.rows[step].lasts[action];
      for (std::size_t kind = 0; kind < kinds; ++kind)
        for (const int member : graph_.members(meeting))
          row[action][kind] =
              std::max(row[action][kind],
                       static_cast<float>(covered[graph_.rank_of(member)][kind].within(begin, end)));
    }
  }
}

void ContentionFit::fit(TrafficClass waits, const ReplayTimes& measured) {
  constexpr double sure_of_errors = 4, least_share = 0.1, alone = 0.05;
  constexpr std::ptrdiff_t fewest_free = 5;
  using Equal = std::tuple<std::int64_t, int, int>;  // bytes, rank, peer: a slow link is its own measure
  std::map<Equal, std::vector<double>> free_of;
  const auto each = [&](const auto& see) {
    for (std::size_t step = 0; step < measured.rows.size(); ++step)
      for (int action = 0; action < graph_.actions(); ++action) {
        const Action& what = graph_.at(action);
        if (is_communication(what) && class_of(what) == waits && !sends(what) && what.bytes > 0 &&
            !measured.rows[step].eager[action])
          see(Equal(what.bytes, graph_.rank_of(action), what.peer),
              static_cast<double>(measured.rows[step].lasts[action]), beside_[step][action]);
      }
  };
  std::vector<bool> counts;
  for (const TrafficClass kind : classes) counts.push_back(kind != waits);
  counts.push_back(true);
  each([&](const Equal& equal, double lasts, const Beside& beside) {
    double others = 0;
    for (std::size_t kind = 0; kind < classes.size(); ++kind)
      if (counts[kind]) others = std::max<double>(others, beside[kind]);
    if (others <= alone * lasts) free_of[equal].push_back(lasts);
  });
  std::map<Equal, double> usual;  // without some that met nobody nothing can be said of equal ones
  for (auto& [equal, lasts] : free_of)
    if (std::ssize(lasts) >= fewest_free) usual[equal] = lower_middle(std::move(lasts));
  for (int action = 0; action < graph_.actions(); ++action) {
    const Action& what = graph_.at(action);
    const auto found = usual.find(Equal(what.bytes, graph_.rank_of(action), what.peer));
    if (is_communication(what) && class_of(what) == waits && !sends(what) && found != usual.end())
      usual_[action] = std::llround(found->second);
  }
  std::vector<Excess<Beside>> excesses;
  each([&](const Equal& equal, double lasts, const Beside& beside) {
    if (const auto found = usual.find(equal); found != usual.end())
      excesses.push_back({lasts - found->second, &beside});
  });
  const auto [share, sure] = shares_lost(excesses, counts);
  for (std::size_t kind = 0; kind < classes.size(); ++kind)
    if (share[kind] >= least_share && sure[kind] >= sure_of_errors)
      found_.push_back({waits, classes[kind], share[kind]});
}

}  // namespace mindpipe
