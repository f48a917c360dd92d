#pragma once
#include <span>
#include <vector>

namespace mindpipe {

/// What a network has been found to be: numbers of which each is the better the smaller it is.
using Objectives = std::vector<double>;

/// Whether `a` is nowhere worse than `b`, and somewhere better.
bool dominates(const Objectives& a, const Objectives& b);

/// The numbers of all points that none dominates, in ascending order; of equal ones all. What is not finite
/// is on no front.
std::vector<std::size_t> front_of(std::span<const Objectives> points);

/// 0 for points that none dominates, 1 for those that only these dominate, and so on.
std::vector<int> ranks_of(std::span<const Objectives> points);

/// Each point's crowding distance (NSGA-II): for each objective the distance between its two neighbours of
/// its rank, in shares of the rank's extent, added up; infinite for the ends.
std::vector<double> crowding_of(std::span<const Objectives> points, const std::vector<int>& ranks);

}  // namespace mindpipe
