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

}  // namespace mindpipe
