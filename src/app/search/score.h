#pragma once
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "config/kinds.h"

namespace mindpipe {

/// A network of a supernet that was scored.
struct Score {
  std::int64_t id = 0;
  std::vector<std::int64_t> parents = {};
  std::string how = {};  ///< it came about: drawn, crossover, mutation
  std::vector<std::uint8_t> choice = {};
  std::array<double, rows_of(Objective{}).size()> values{};  ///< by objective
  /// The losses of the first and the second half of the held-out batches; where there is one batch, no
  /// numbers.
  std::array<double, 2> halves{std::numeric_limits<double>::quiet_NaN(),
                               std::numeric_limits<double>::quiet_NaN()};

  double value(Objective objective) const { return values[static_cast<std::size_t>(objective)]; }
  double& value(Objective objective) { return values[static_cast<std::size_t>(objective)]; }
  /// The loss, for comparisons: one that is no number is worse than all.
  double rank_loss() const;
};

/// A score as a line of search.jsonl.
std::string line_of(const Score& score);
/// The score that a line holds; none where it is no whole one: a crash cut it short.
std::optional<Score> score_of(const std::string& line);

/// The scores from the lowest loss to the highest, of equal ones the first first: their places.
std::vector<std::size_t> by_loss(const std::vector<Score>& scores);

}  // namespace mindpipe
