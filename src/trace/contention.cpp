#include "trace/contention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "core/middle.h"
#include "trace/port_transfers.h"

namespace mindpipe {
namespace {

/// Spans of time, and how much of any other one they cover.
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

/// A transfer that ended when it did, and stood ready before.
struct Ended {
  std::int64_t end, offered;
  int action;
};
/// Calls see(action, time) with the time of each since it stood ready, behind the end of the one before.
template <class See>
void each_behind(std::vector<Ended>& all, const See& see) {
  std::stable_sort(all.begin(), all.end(), [](const Ended& a, const Ended& b) { return a.end < b.end; });
  std::int64_t before = std::numeric_limits<std::int64_t>::min();
  for (const auto& [end, offered, action] : all) {
    if (end > before) see(action, end - std::max(offered, before));
    before = end;
  }
}

/// Sizes of what a program sends, and for each the least that is about as large: parts of one thing may
/// differ by some bytes.
std::map<std::int64_t, std::int64_t> alike_sizes(const ReplayGraph& graph) {
  constexpr double alike = 1.01;
  std::map<std::int64_t, std::int64_t> sizes;
  for (int action = 0; action < graph.actions(); ++action) sizes[graph.at(action).bytes] = 0;
  std::int64_t least = 0;
  for (auto& [bytes, about] : sizes) {
    if (static_cast<double>(bytes) > alike * static_cast<double>(least)) least = bytes;
    about = least;
  }
  return sizes;
}

}  // namespace

ContentionFit::ContentionFit(const StepTrace& trace, const ReplayGraph& graph, const ReplayTimes& measured)
    : trace_(trace), graph_(graph), measured_(measured), about_(alike_sizes(graph)) {
  forget_waits();
  find_overlaps();
  find_waits();
  if (!goes_by_rule_) find_waits_of_messages();
  for (const TrafficClass waits : classes) {
    if (goes_by_rule_) find_pairs_by_rule(waits);
    else fit(waits);
  }
}

void ContentionFit::forget_waits() {
  const std::vector<std::int64_t> none(graph_.actions(), 0);
  usual_ = none;
  by_rule_.waits = {
      .all = {measured_.rows.size(), none}, .for_own = {measured_.rows.size(), none}, .by_pair = {}};
}

void ContentionFit::find_overlaps() {
  constexpr std::size_t kinds = classes.size() + 1;
  const auto kind_of = [&](int action) -> std::size_t {
    const Action& what = graph_.at(action);
    return is_work(what) ? classes.size() : place_of(class_of(what));
  };
  const auto end_of = [&](std::size_t step, int action) {
    return trace_.ranks[graph_.rank_of(action)].steps[step][graph_.index_of(action)].end;
  };
  std::vector<std::array<Covered, kinds>> covered(graph_.ranks());
  for (std::size_t step = 0; step < measured_.rows.size(); ++step)
    for (int action = 0; action < graph_.actions(); ++action) {
      const bool is_other_sum = !is_work(graph_.at(action)) && kind_of(action) == classes.size();
      const std::int64_t end = end_of(step, action);
      std::int64_t begin = end - measured_.rows[step].lasts[action];
      if (is_work(graph_.at(action)))
        begin = trace_.ranks[graph_.rank_of(action)].steps[step][graph_.index_of(action)].start;
      if (!is_other_sum) covered[graph_.rank_of(action)][kind_of(action)].add(begin, end);
    }
  for (auto& rank : covered)
    for (Covered& kind : rank) kind.join();
  for (std::size_t step = 0; step < measured_.rows.size(); ++step) {
    std::vector<Beside>& row = beside_.emplace_back(graph_.actions(), Beside{});
    for (int action = 0; action < graph_.actions(); ++action) {
      const int meeting = graph_.meeting_of(action);
      if (meeting < 0 || measured_.rows[step].eager[action]) continue;
      const std::int64_t end = end_of(step, action), begin = end - measured_.rows[step].lasts[action];
      for (std::size_t kind = 0; kind < kinds; ++kind)
        for (const int member : graph_.members(meeting))
          row[action][kind] =
              std::max(row[action][kind],
                       static_cast<float>(covered[graph_.rank_of(member)][kind].within(begin, end)));
    }
  }
}

/// Calls see(step, action) for each receive and sum of a class that waited for others.
template <class See>
void ContentionFit::each_of(TrafficClass waits, const See& see) const {
  for (std::size_t step = 0; step < measured_.rows.size(); ++step)
    for (int action = 0; action < graph_.actions(); ++action) {
      const Action& what = graph_.at(action);
      if (is_communication(what) && class_of(what) == waits && !sends(what) && what.bytes > 0 &&
          !measured_.rows[step].eager[action])
        see(step, action);
    }
}

/// What equal ones take that meet nobody: the middle of those that met no other class and did not wait for
/// their own. Who waits for its own is known once it is known about what all take: what the shortest does, as
/// to meet others takes nobody less; or, where two are always under way at once, what each took behind the
/// end of the one before. Where nothing is known, and what was found before stays, is nothing said.
void ContentionFit::find_usual(TrafficClass waits, Guess guess) {
  constexpr double alone = 0.05;
  constexpr std::ptrdiff_t fewest = 5;
  const double share = guess == Guess::shortest ? 0 : 0.5;
  std::map<Equal, std::vector<double>> times;
  std::vector<std::vector<Ended>> of_rank(graph_.ranks());
  each_of(waits, [&](std::size_t step, int action) {
    const int rank = graph_.rank_of(action);
    const std::int64_t lasts = measured_.rows[step].lasts[action],
                       end = trace_.ranks[rank].steps[step][graph_.index_of(action)].end;
    if (guess == Guess::behind_own) return of_rank[rank].push_back({end, end - lasts, action});
    double others = static_cast<double>(by_rule_.waits.all[step][action]);
    for (const TrafficClass kind : classes)
      if (kind != waits) others = std::max<double>(others, beside_[step][action][place_of(kind)]);
    if (guess == Guess::shortest || others <= alone * static_cast<double>(lasts))
      times[equal_to(action, guess)].push_back(static_cast<double>(lasts));
  });
  for (std::vector<Ended>& all : of_rank)
    each_behind(all, [&](int action, std::int64_t took) {
      times[equal_to(action, guess)].push_back(static_cast<double>(took));
    });
  std::map<Equal, std::int64_t> usual;
  for (auto& [equal, lasts] : times)
    if (const std::ptrdiff_t count = std::ssize(lasts); count >= fewest)
      usual[equal] = std::llround(
          in_place(std::move(lasts), static_cast<std::ptrdiff_t>(share * static_cast<double>(count - 1))));
  for (int action = 0; action < graph_.actions(); ++action) {
    const Action& what = graph_.at(action);
    const auto found = usual.find(equal_to(action, guess));
    if (is_communication(what) && class_of(what) == waits && !sends(what) && found != usual.end())
      usual_[action] = found->second;
  }
}

/// What transfers waited by the rule of ports, all of them or those of one class alone, with the latency that
/// explains best what they took: where the order of times differs by less than it, who goes first changes
/// what all behind wait.
ContentionFit::ByRule ContentionFit::best_by_rule(std::optional<TrafficClass> one) const {
  ByRule best{.off = std::numeric_limits<double>::infinity()};
  for (const double latency : {1.0 / 32, 1.0 / 128, 1.0 / 512}) {
    ByRule found{.latency = latency,
                 .waits = PortTransfers(trace_, graph_, usual_, latency).waits(measured_, one)};
    for (const TrafficClass kind : classes) {
      if (one && kind != *one) continue;
      each_of(kind, [&](std::size_t step, int action) {
        if (usual_[action] <= 0) return;
        const std::int64_t more = measured_.rows[step].lasts[action] - usual_[action];
        found.took += std::abs(static_cast<double>(more));
        found.off += std::abs(static_cast<double>(more - found.waits.all[step][action]));
      });
    }
    if (found.off < best.off) best = std::move(found);
  }
  return best;
}

/// Where each meets others, none is known that met nobody. What equal ones took without their waits by the
/// rule then says in which direction what they take has been wrong; no more than the shortest took. Who takes
/// longer lets others wait longer, so each goes a part of the way, and half as far where it turns round.
void ContentionFit::take_waits_off(std::map<Equal, Step>& steps) {
  std::map<Equal, std::vector<double>> without, lasts;
  for (const TrafficClass kind : classes)
    each_of(kind, [&](std::size_t step, int action) {
      const auto all = static_cast<double>(measured_.rows[step].lasts[action]);
      lasts[equal_to(action, Guess::middle)].push_back(all);
      without[equal_to(action, Guess::middle)].push_back(
          all - static_cast<double>(by_rule_.waits.all[step][action]));
    });
  for (auto& [equal, all] : lasts) {
    Step& step = steps.try_emplace(equal).first->second;
    step.to = std::min(median_of(without[equal]), *std::min_element(all.begin(), all.end()));
  }
  for (int action = 0; action < graph_.actions(); ++action) {
    const auto found = steps.find(equal_to(action, Guess::middle));
    if (usual_[action] <= 0 || found == steps.end()) continue;
    Step& step = found->second;
    if (step.from == 0) {
      const double by = step.to - static_cast<double>(usual_[action]);
      if (by * step.by < 0) step.part /= 2;
      step.by = by;
      step.from = static_cast<double>(usual_[action]);
    }
    usual_[action] = std::max<std::int64_t>(1, std::llround(step.from + step.part * step.by));
  }
  for (auto& [equal, step] : steps) step.from = 0;
}

/// Asks the rule with several guesses of what transfers take that meet nobody. The one with which it leaves
/// least unexplained counts. A guess that was made for the rule has to be a better one; of large traces fewer
/// are made.
void ContentionFit::find_waits() {
  constexpr double little = 0.06, of_made = 0.04, nothing = 0.03;
  constexpr std::int64_t most_asked = 4'000'000;
  const std::int64_t asked = std::ssize(measured_.rows) * graph_.actions(),
                     most_turns = std::min<std::int64_t>(12, most_asked / std::max<std::int64_t>(1, asked));
  std::optional<std::pair<ByRule, std::vector<std::int64_t>>> best;
  const auto try_rule = [&] {
    by_rule_ = best_by_rule({});
    const bool more = !best || by_rule_.off < best->first.off;
    if (more) best = {by_rule_, usual_};
    return more;
  };
  for (const Guess guess : {Guess::shortest, Guess::middle}) {
    for (const TrafficClass waits : classes) find_usual(waits, guess);
    try_rule();
  }
  const auto leaves = [&](double share) { return best->first.off > share * best->first.took; };
  if (leaves(nothing) && most_turns > 2) {
    usual_ = best->second;
    for (const TrafficClass waits : classes)
      if (waits != TrafficClass::pipeline) find_usual(waits, Guess::behind_own);
    try_rule();
  }
  const bool is_found = best->first.off <= little * best->first.took;
  std::tie(by_rule_, usual_) = *best;
  std::map<Equal, Step> steps;
  for (int turn = 0, in_vain = 0; turn < most_turns && in_vain < 2 && leaves(nothing); ++turn) {
    take_waits_off(steps);
    in_vain = try_rule() ? 0 : in_vain + 1;
  }
  goes_by_rule_ = is_found || !leaves(of_made);
  std::tie(by_rule_, usual_) = std::move(*best);
}

/// Where the rule leaves more than a little unexplained, messages alone wait for each other by it.
void ContentionFit::find_waits_of_messages() {
  constexpr TrafficClass messages = TrafficClass::pipeline;
  forget_waits();
  for (const Guess guess : {Guess::shortest, Guess::middle}) {
    find_usual(messages, guess);
    by_rule_ = best_by_rule(messages);
    by_rule_.waits.for_own = by_rule_.waits.all;
  }
  for (const TrafficClass waits : classes)
    if (waits != messages) find_usual(waits, Guess::middle);
}

/// Who waits for whom, where the rule explains it: what that costs says who is to blame.
void ContentionFit::find_pairs_by_rule(TrafficClass waits) {
  constexpr double worth_asking = 0.001;
  std::int64_t lasts = 0;
  each_of(waits, [&](std::size_t step, int action) { lasts += measured_.rows[step].lasts[action]; });
  for (const TrafficClass holds : classes) {
    const std::int64_t waited = at(by_rule_.waits.by_pair, waits, holds);
    if (holds != waits && static_cast<double>(waited) > worth_asking * static_cast<double>(lasts))
      found_.push_back({waits, holds});
  }
}

void ContentionFit::fit(TrafficClass waits) {
  constexpr double sure_of_errors = 4, least_share = 0.1;
  std::vector<bool> counts;
  for (const TrafficClass kind : classes) counts.push_back(kind != waits);
  counts.push_back(true);
  std::vector<Excess<Beside>> excesses;
  each_of(waits, [&](std::size_t step, int action) {
    if (usual_[action] > 0)
      excesses.push_back({static_cast<double>(excess(step, action)), &beside_[step][action]});
  });
  const auto [share, sure] = shares_lost(excesses, counts);
  share_[place_of(waits)] = share;
  for (std::size_t kind = 0; kind < classes.size(); ++kind)
    if (share[kind] >= least_share && sure[kind] >= sure_of_errors)
      found_.push_back({waits, classes[kind], share[kind]});
}

/// What it took beyond what is usual, and beyond its waits for its own class, as far as it took that.
std::int64_t ContentionFit::excess(std::size_t step, int action) const {
  const std::int64_t more = measured_.rows[step].lasts[action] - usual_[action];
  return more - std::clamp<std::int64_t>(more, 0, by_rule_.waits.for_own[step][action]);
}

std::int64_t ContentionFit::lost(std::size_t step, int action, TrafficClass beside) const {
  const std::size_t waits = place_of(class_of(graph_.at(action))), holds = place_of(beside);
  if (waits == classes.size() || holds == classes.size() || usual_[action] <= 0) return 0;
  const std::vector<double>& share = share_[waits];
  double all = 0;
  for (std::size_t kind = 0; kind < share.size(); ++kind) all += share[kind] * beside_[step][action][kind];
  if (all <= 0) return 0;
  const double time = beside_[step][action][holds], more = static_cast<double>(excess(step, action));
  return std::llround(std::clamp(more * share[holds] * time / all, 0.0, time));
}

}  // namespace mindpipe
