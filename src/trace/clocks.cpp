#include "trace/clocks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "trace/replay_graph.h"

namespace mindpipe {
namespace {

constexpr double most_rate = 1e-3;  // of a clock, ahead or behind
constexpr int halvings = 100;

/// A limit on how far a clock is ahead at a time, from a time near both on.
struct Limit {
  double at, ahead;
};

/// Where a function with one top has it.
template <class Function>
double top_of(double least, double most, const Function& function) {
  for (int turn = 0; turn < halvings; ++turn) {
    const double left = least + (most - least) / 3, right = most - (most - least) / 3;
    (function(left) < function(right) ? least : most) = function(left) < function(right) ? left : right;
  }
  return (least + most) / 2;
}

/// The lines that lie below some limits and above others, all of which are at times from 0 on.
class Lines {
 public:
  Lines(std::vector<Limit> above, std::vector<Limit> below)
      : above_(std::move(above)), below_(std::move(below)) {
    rate_ = top_of(-most_rate, most_rate, [&](double rate) { return highest(rate) - lowest(rate); });
    margin_ = (highest(rate_) - lowest(rate_)) / 2;
  }
  double rate() const { return rate_; }
  double ahead() const { return lowest(rate_) + margin_; }
  /// How far any of these lines is off the one in the middle at a time; where there is none, by how much
  /// limits contradict each other.
  double bound_at(double time) const {
    if (margin_ <= 0) return -margin_;
    const double least = edge(-most_rate), most = edge(most_rate), own = ahead() + rate_ * time;
    const auto high = [&](double rate) { return highest(rate) + rate * time; };
    const auto low = [&](double rate) { return -(lowest(rate) + rate * time); };
    return std::max(high(top_of(least, most, high)) - own, own + low(top_of(least, most, low)));
  }

 private:
  double highest(double rate) const {
    double least = std::numeric_limits<double>::max();
    for (const Limit& limit : above_) least = std::min(least, limit.ahead - rate * limit.at);
    return least;
  }
  double lowest(double rate) const {
    double most = std::numeric_limits<double>::lowest();
    for (const Limit& limit : below_) most = std::max(most, limit.ahead - rate * limit.at);
    return most;
  }
  /// The rate nearest to `end` of a line that keeps all limits.
  double edge(double end) const {
    double inside = rate_, outside = end;
    for (int turn = 0; turn < halvings; ++turn) {
      const double middle = (inside + outside) / 2;
      (highest(middle) >= lowest(middle) ? inside : outside) = middle;
    }
    return inside;
  }

  std::vector<Limit> above_, below_;
  double rate_ = 0, margin_ = 0;
};

/// The hosts of a trace by number, and what went from one to another.
class Hosts {
 public:
  explicit Hosts(const StepTrace& trace) {
    for (const std::string& name : trace.hosts)
      of_rank.push_back(numbers_.emplace(name, static_cast<int>(numbers_.size())).first->second);
  }
  int count() const { return static_cast<int>(numbers_.size()); }

  void add_messages(const StepTrace& trace) {
    const ReplayGraph graph(trace.grid, trace.program);
    for (int meeting = 0; meeting < graph.meetings(); ++meeting) {
      const std::span<const int> members = graph.members(meeting);
      if (graph.at(members.front()).group == Members::grid) add_sum(trace, graph, members);
      if (!is_message(graph.at(members.front()))) continue;
      const bool first_sends = sends(graph.at(members.front()));
      const int send = members[first_sends ? 0 : 1], receive = members[first_sends ? 1 : 0];
      const int from = graph.rank_of(send), to = graph.rank_of(receive);
      for (std::size_t step = 0; step < trace.steps.size() && of_rank[from] != of_rank[to]; ++step)
        points[{of_rank[from], of_rank[to]}].push_back(
            {trace.ranks[from].steps[step][graph.index_of(send)].start,
             trace.ranks[to].steps[step][graph.index_of(receive)].end});
    }
  }
  void add_pings(const StepTrace& trace) {
    for (std::size_t rank = 0; rank < trace.ranks.size(); ++rank)
      for (const Ping& ping : trace.ranks[rank].pings) {
        points[{of_rank[0], of_rank[rank]}].push_back({ping.asked, ping.heard});
        points[{of_rank[rank], of_rank[0]}].push_back({ping.answered, ping.back});
      }
  }

  std::vector<int> of_rank;
  std::map<std::pair<int, int>, std::vector<ClockPoint>> points;

 private:
  /// Nobody's sum of all ranks ends before the last of them has begun it.
  void add_sum(const StepTrace& trace, const ReplayGraph& graph, std::span<const int> members) {
    for (std::size_t step = 0; step < trace.steps.size(); ++step) {
      std::map<int, ClockPoint> of_hosts;  // last begin, first end
      for (const int member : members) {
        const Recorder::Times& times = trace.ranks[graph.rank_of(member)].steps[step][graph.index_of(member)];
        const auto [found, is_new] =
            of_hosts.try_emplace(of_rank[graph.rank_of(member)], ClockPoint{times.start, times.end});
        found->second = {std::max(found->second.left, times.start), std::min(found->second.seen, times.end)};
      }
      for (const auto& [from, begun] : of_hosts)
        for (const auto& [to, ended] : of_hosts)
          if (from != to) points[{from, to}].push_back({begun.left, ended.seen});
    }
  }

  std::map<std::string, int> numbers_;
};

void move_times(RankTimes& times, const HostClock& clock) {
  for (auto& step : times.steps)
    for (Recorder::Times& action : step) action = {clock.as_first(action.start), clock.as_first(action.end)};
  for (auto& step : times.sums)
    for (TracedSum& sum : step) {
      sum.start = clock.as_first(sum.start);
      sum.end = clock.as_first(sum.end);
    }
}

}  // namespace

std::int64_t HostClock::as_first(std::int64_t time) const {
  return zero + std::llround((static_cast<double>(time - zero) - ahead) / (1 + rate));
}

HostClock clock_between(const std::vector<ClockPoint>& went, const std::vector<ClockPoint>& came) {
  if (went.empty() || came.empty()) return {};
  std::int64_t zero = went.front().left, last = zero;
  for (const ClockPoint& point : went) {
    zero = std::min(zero, point.left);
    last = std::max(last, point.left);
  }
  for (const ClockPoint& point : came) {
    zero = std::min(zero, point.seen);
    last = std::max(last, point.seen);
  }
  std::vector<Limit> above, below;
  for (const ClockPoint& point : went)
    above.push_back({static_cast<double>(point.left - zero), static_cast<double>(point.seen - point.left)});
  for (const ClockPoint& point : came)
    below.push_back({static_cast<double>(point.seen - zero), static_cast<double>(point.left - point.seen)});
  const Lines lines(std::move(above), std::move(below));
  const double bound = std::max(lines.bound_at(0), lines.bound_at(static_cast<double>(last - zero)));
  return {zero, lines.ahead(), lines.rate(), bound, true};
}

std::vector<HostClock> align_clocks(StepTrace& trace) {
  Hosts hosts(trace);
  std::vector<HostClock> clocks(hosts.count());
  clocks.front().is_known = true;
  if (hosts.count() == 1) return clocks;
  hosts.add_messages(trace);
  hosts.add_pings(trace);
  while (true) {
    int next = -1;
    HostClock best;
    for (int known = 0; known < hosts.count(); ++known)
      for (int other = 0; other < hosts.count() && clocks[known].is_known; ++other) {
        if (clocks[other].is_known) continue;
        // Times of the known host are the first host's before the other's clock is looked for.
        std::vector<ClockPoint> went = hosts.points[{known, other}], came = hosts.points[{other, known}];
        for (ClockPoint& point : went) point.left = clocks[known].as_first(point.left);
        for (ClockPoint& point : came) point.seen = clocks[known].as_first(point.seen);
        HostClock clock = clock_between(went, came);
        clock.bound += clocks[known].bound;
        if (!clock.is_known || (next >= 0 && clock.bound >= best.bound)) continue;
        next = other;
        best = clock;
      }
    if (next < 0) break;
    clocks[next] = best;
  }
  double bound = 0, second = 0;  // the two largest: times of two hosts may both be off
  for (const HostClock& clock : clocks) {
    second = std::max(second, std::min(bound, clock.bound));
    bound = std::max(bound, clock.bound);
  }
  trace.clock_bound = std::llround(std::ceil(bound + second));
  for (std::size_t rank = 0; rank < trace.ranks.size(); ++rank)
    if (hosts.of_rank[rank] != 0 && clocks[hosts.of_rank[rank]].is_known)
      move_times(trace.ranks[rank], clocks[hosts.of_rank[rank]]);
  return clocks;
}

}  // namespace mindpipe
