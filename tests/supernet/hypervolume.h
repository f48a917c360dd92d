#pragma once
#include <algorithm>
#include <functional>
#include <utility>

#include "supernet/front.h"

// How good a front is, as one number.
namespace mindpipe {

/// The volume that points dominate, counted by their first `dimensions` alone: slices along the last of them,
/// each as thick as the next point is far.
inline double volume_of(std::vector<const Objectives*> points, const Objectives& reference,
                        std::size_t dimensions) {
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

/// The volume that points dominate, as far as it is better than the reference everywhere.
inline double hypervolume(std::span<const Objectives> points, const Objectives& reference) {
  std::vector<const Objectives*> better;
  for (const std::size_t at : front_of(points))
    if (std::equal(points[at].begin(), points[at].end(), reference.begin(), std::less<>()))
      better.push_back(&points[at]);
  return reference.empty() ? 0 : volume_of(std::move(better), reference, reference.size());
}

}  // namespace mindpipe
