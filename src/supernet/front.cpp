#include "supernet/front.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace mindpipe {
namespace {

std::vector<std::size_t> numbers_up_to(std::size_t count) {
  std::vector<std::size_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), std::size_t{0});
  return numbers;
}

bool all_finite(const Objectives& point) {
  return std::all_of(point.begin(), point.end(), [](double value) { return std::isfinite(value); });
}

/// The volume that points dominate, counted by their first `dimensions` alone: slices along the last of them,
/// each as thick as the next point is far.
double volume_of(std::vector<const Objectives*> points, const Objectives& reference, std::size_t dimensions) {
  const std::size_t last = dimensions - 1;
  std::sort(points.begin(), points.end(),
            [last](const Objectives* a, const Objectives* b) { return (*a)[last] < (*b)[last]; });
  if (points.empty()) return 0;
  if (last == 0) return reference[0] - (*points.front())[0];
  double volume = 0, least = reference[0];
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double end = i + 1 < points.size() ? (*points[i + 1])[last] : reference[last];
    const double thickness = end - (*points[i])[last];
    least = std::min(least, (*points[i])[0]);
    if (thickness == 0) continue;
    const auto so_far = points.begin() + static_cast<std::ptrdiff_t>(i + 1);
    volume +=
        thickness * (last == 1 ? reference[0] - least : volume_of({points.begin(), so_far}, reference, last));
  }
  return volume;
}

}  // namespace

bool dominates(const Objectives& a, const Objectives& b) {
  bool better = false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!(a[i] <= b[i])) return false;
    better = better || a[i] < b[i];
  }
  return better;
}

std::vector<std::size_t> front_of(std::span<const Objectives> points) {
  // In the order of their words a point comes before all that it dominates.
  std::vector<std::size_t> order = numbers_up_to(points.size()), front;
  std::erase_if(order, [&](std::size_t at) { return !all_finite(points[at]); });
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return points[a] < points[b]; });
  for (const std::size_t at : order)
    if (std::none_of(front.begin(), front.end(),
                     [&](std::size_t other) { return dominates(points[other], points[at]); }))
      front.push_back(at);
  std::sort(front.begin(), front.end());
  return front;
}

std::vector<int> ranks_of(std::span<const Objectives> points) {
  std::vector<int> ranks(points.size(), 0),
      better(points.size(), 0);  // how many better ones have no rank yet
  std::vector<std::vector<std::size_t>> worse(points.size());
  for (std::size_t a = 0; a < points.size(); ++a)
    for (std::size_t b = 0; b < points.size(); ++b)
      if (dominates(points[a], points[b])) {
        worse[a].push_back(b);
        ++better[b];
      }
  std::vector<std::size_t> front;
  for (std::size_t at = 0; at < points.size(); ++at)
    if (better[at] == 0) front.push_back(at);
  for (int rank = 0; !front.empty(); ++rank) {
    std::vector<std::size_t> next;
    for (const std::size_t at : front) {
      ranks[at] = rank;
      for (const std::size_t other : worse[at])
        if (--better[other] == 0) next.push_back(other);
    }
    front = std::move(next);
  }
  return ranks;
}

std::vector<double> crowding_of(std::span<const Objectives> points, const std::vector<int>& ranks) {
  std::vector<double> crowding(points.size(), 0);
  for (std::size_t objective = 0; !points.empty() && objective < points.front().size(); ++objective) {
    const auto value = [&](std::size_t at) { return points[at][objective]; };
    std::vector<std::size_t> order = numbers_up_to(points.size());
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return ranks[a] != ranks[b] ? ranks[a] < ranks[b] : value(a) < value(b);
    });
    for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
      while (end < order.size() && ranks[order[end]] == ranks[order[begin]]) ++end;
      const double extent = value(order[end - 1]) - value(order[begin]);
      if (!(extent > 0)) continue;  // all alike here: no ends
      for (const std::size_t at : {order[begin], order[end - 1]})
        crowding[at] = std::numeric_limits<double>::infinity();
      for (std::size_t i = begin + 1; i + 1 < end; ++i)
        crowding[order[i]] += (value(order[i + 1]) - value(order[i - 1])) / extent;
    }
  }
  return crowding;
}

double hypervolume(std::span<const Objectives> points, const Objectives& reference) {
  std::vector<const Objectives*> better;
  for (const std::size_t at : front_of(points))
    if (std::equal(points[at].begin(), points[at].end(), reference.begin(), std::less<>()))
      better.push_back(&points[at]);
  return reference.empty() ? 0 : volume_of(std::move(better), reference, reference.size());
}

}  // namespace mindpipe
