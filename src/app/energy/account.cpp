#include "app/energy/account.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <sstream>

namespace mindpipe {
namespace {

/// What of RankEnergy has a fixed size.
struct PackedHead {
  std::int64_t leader, begin_ns, end_ns;
  TimeSpent spent, evaluated;
  std::int64_t metered, shared, divided;
  double joules, reader_seconds;
  std::uint64_t work, energy, words, troubles;
};

template <class Item>
void put(std::vector<std::byte>& bytes, const Item* items, std::size_t count) {
  const auto* begin = reinterpret_cast<const std::byte*>(items);
  bytes.insert(bytes.end(), begin, begin + count * sizeof(Item));
}

template <class Item>
void take(const std::vector<std::byte>& bytes, std::size_t& at, Item* items, std::size_t count) {
  if (count > 0) std::memcpy(items, bytes.data() + at, count * sizeof(Item));
  at += count * sizeof(Item);
}

double in_seconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-9; }

/// A curve's value at a moment, by a straight line between its points.
template <class Point>
double at(const std::vector<Point>& points, double Point::*value, std::int64_t ns) {
  const auto next = std::lower_bound(points.begin(), points.end(), ns,
                                     [](const Point& point, std::int64_t at) { return point.ns < at; });
  if (points.empty()) return 0;
  if (next == points.begin()) return points.front().*value;
  if (next == points.end()) return points.back().*value;
  const Point &a = *(next - 1), &b = *next;
  const double share = static_cast<double>(ns - a.ns) / static_cast<double>(b.ns - a.ns);
  return a.*value + share * (b.*value - a.*value);
}

/// Whether a curve has a point at a moment, but for what it takes to wake who reads.
bool is_noted(const std::vector<WorkPoint>& points, std::int64_t ns) {
  constexpr std::int64_t most_apart = 20'000'000;
  const auto next = std::lower_bound(points.begin(), points.end(), ns - most_apart,
                                     [](const WorkPoint& point, std::int64_t at) { return point.ns < at; });
  return next != points.end() && next->ns <= ns + most_apart;
}

/// Windows of a node between the readings of its leader where the work was noted, too: between its points
/// nobody knows how it was spread. Nothing is claimed for less than a second.
void add_windows(const std::vector<RankEnergy>& ranks, int leader, std::vector<EnergyWindow>& windows) {
  constexpr std::int64_t shortest_ns = 1'000'000'000;
  std::vector<EnergyPoint> readings;
  for (const EnergyPoint& reading : ranks[leader].energy)
    if (is_noted(ranks[leader].work, reading.ns)) readings.push_back(reading);
  for (std::size_t i = 1; i < readings.size(); ++i) {
    const std::int64_t from = readings[i - 1].ns, to = readings[i].ns;
    if (to - from < shortest_ns) continue;
    EnergyWindow window;
    window.joules = readings[i].joules - readings[i - 1].joules;
    for (const RankEnergy& rank : ranks)
      if (rank.leader == leader) {
        const double busy = at(rank.work, &WorkPoint::busy, to) - at(rank.work, &WorkPoint::busy, from);
        window.busy += busy;
        window.rest += in_seconds(to - from) - busy;
      }
    windows.push_back(window);
  }
}

/// Watts of the metered ranks: from windows, or, where these are few or alike, from the whole.
FittedPowers powers_of(const std::vector<RankEnergy>& ranks, const Powers& estimate) {
  std::vector<EnergyWindow> windows;
  EnergyWindow whole;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (!ranks[ranks[i].leader].metered) continue;
    whole.busy += ranks[i].busy_seconds();
    whole.rest += ranks[i].seconds() - ranks[i].busy_seconds();
    whole.joules += ranks[i].joules;
    if (ranks[i].metered) add_windows(ranks, static_cast<int>(i), windows);
  }
  const FittedPowers fitted = fit_powers(windows, estimate);
  if (fitted.fitted) return fitted;
  FittedPowers scaled = fit_powers({whole}, estimate);
  scaled.windows = windows.size();
  return scaled;
}

void add_phases(EnergyPhases& phases, const RankEnergy& rank, const FittedPowers& powers) {
  const TimeSpent& spent = rank.spent;
  phases.forward += powers.busy * in_seconds(spent.forward);
  phases.backward += powers.busy * in_seconds(spent.backward);
  phases.update += powers.busy * in_seconds(spent.update);
  phases.scalars += powers.busy * in_seconds(spent.scalars);
  phases.evaluation += powers.busy * in_seconds(rank.evaluated.work());
  const double waiting = in_seconds(spent.waiting() + rank.evaluated.waiting());
  phases.waiting += powers.rest * waiting;
  phases.outside += powers.rest * std::max(0.0, rank.seconds() - rank.busy_seconds() - waiting);
}

/// Lets the phases add up to the energy: what a regression leaves over falls on all alike, as where ranks
/// took less while files were written than while they waited.
void add_up_to(EnergyPhases& phases, double joules) {
  const double total = phases.total();
  if (total <= 0) return;
  for (double* phase : {&phases.forward, &phases.backward, &phases.update, &phases.scalars,
                        &phases.evaluation, &phases.waiting, &phases.outside})
    *phase *= joules / total;
}

/// Seconds that the ranks which `is_other` names waited while one with so much work still worked.
template <class IsOther>
double seconds_behind(const std::vector<RankEnergy>& ranks, double work, const IsOther& is_other) {
  double behind = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i)
    if (is_other(static_cast<int>(i)))
      behind +=
          std::clamp(work - in_seconds(ranks[i].spent.work()), 0.0, in_seconds(ranks[i].spent.waiting()));
  return behind;
}

/// The busiest rank, where it has more work than its like on other replicas; else its stage, where that has
/// more than others.
WaitedFor waited_for(const std::vector<RankEnergy>& ranks, const Coord& shape, double rest_watts) {
  constexpr double more = 1.02;
  if (ranks.size() < 2) return {};
  const auto work = [&](int rank) { return in_seconds(ranks[rank].spent.work()); };
  const auto place = [&](int rank) { return coord_at(shape, rank).pipeline; };
  int busiest = 0;
  for (int rank = 1; rank < static_cast<int>(ranks.size()); ++rank)
    if (work(rank) > work(busiest)) busiest = rank;
  double like = 0, others = 0;
  int likes = 0;
  for (int rank = 0; rank < static_cast<int>(ranks.size()); ++rank) {
    if (rank == busiest) continue;
    const bool is_like = place(rank) == place(busiest);
    (is_like ? like : others) += work(rank);
    likes += is_like ? 1 : 0;
  }
  const int rest = static_cast<int>(ranks.size()) - 1 - likes;
  const bool alone = likes > 0 && work(busiest) > more * like / likes;
  if (!alone && (rest == 0 || work(busiest) <= more * others / rest)) return {};
  if (alone || likes == 0)
    return {likes == 0 ? fmt::format("rank {} (stage {})", busiest, place(busiest))
                       : fmt::format("rank {}", busiest),
            rest_watts * seconds_behind(ranks, work(busiest), [&](int rank) { return rank != busiest; })};
  const double mean = (like + work(busiest)) / (likes + 1);
  return {fmt::format("stage {}", place(busiest)),
          rest_watts * seconds_behind(ranks, mean, [&](int rank) { return place(rank) != place(busiest); })};
}

/// Adds the lines of a text that are not there yet: nodes may say the same.
void add_lines(std::vector<std::string>& lines, const std::string& text) {
  std::istringstream more(text);
  for (std::string line; std::getline(more, line);)
    if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(line);
}

}  // namespace

std::vector<std::byte> packed(const RankEnergy& rank) {
  const PackedHead head{rank.leader,       rank.begin_ns,       rank.end_ns,      rank.spent,
                        rank.evaluated,    rank.metered,        rank.shared,      rank.divided,
                        rank.joules,       rank.reader_seconds, rank.work.size(), rank.energy.size(),
                        rank.words.size(), rank.troubles.size()};
  std::vector<std::byte> bytes;
  put(bytes, &head, 1);
  put(bytes, rank.work.data(), rank.work.size());
  put(bytes, rank.energy.data(), rank.energy.size());
  put(bytes, rank.words.data(), rank.words.size());
  put(bytes, rank.troubles.data(), rank.troubles.size());
  return bytes;
}

RankEnergy unpacked(const std::vector<std::byte>& bytes) {
  PackedHead head{};
  std::size_t position = 0;
  take(bytes, position, &head, 1);
  RankEnergy rank;
  rank.leader = static_cast<int>(head.leader);
  rank.begin_ns = head.begin_ns;
  rank.end_ns = head.end_ns;
  rank.spent = head.spent;
  rank.evaluated = head.evaluated;
  rank.metered = head.metered != 0;
  rank.shared = head.shared != 0;
  rank.divided = head.divided != 0;
  rank.joules = head.joules;
  rank.reader_seconds = head.reader_seconds;
  rank.work.resize(head.work);
  rank.energy.resize(head.energy);
  rank.words.resize(head.words);
  rank.troubles.resize(head.troubles);
  take(bytes, position, rank.work.data(), head.work);
  take(bytes, position, rank.energy.data(), head.energy);
  take(bytes, position, rank.words.data(), head.words);
  take(bytes, position, rank.troubles.data(), head.troubles);
  return rank;
}

EnergyAccount account_of(const std::vector<RankEnergy>& ranks, const Coord& shape, const Powers& estimate) {
  EnergyAccount account;
  const FittedPowers by_estimate{estimate.busy_rank(), estimate.waiting_rank(), false};
  const FittedPowers measured = powers_of(ranks, estimate);
  bool any_measured = false;
  for (const RankEnergy& rank : ranks) {
    const bool metered = ranks[rank.leader].metered;
    any_measured = any_measured || metered;
    account.estimated = account.estimated || !metered || rank.divided;
    account.joules += metered ? rank.joules : estimated_joules(estimate, rank.busy_seconds(), rank.seconds());
    account.seconds = std::max(account.seconds, rank.seconds());
    account.reader_seconds += rank.reader_seconds;
    account.shared = account.shared || rank.shared;
    add_phases(account.phases, rank, metered ? measured : by_estimate);
    add_lines(account.words, rank.words);
    add_lines(account.troubles, rank.troubles);
  }
  add_up_to(account.phases, account.joules);
  account.powers = any_measured ? measured : by_estimate;
  account.waited_for = waited_for(ranks, shape, account.powers.rest);
  return account;
}

}  // namespace mindpipe
