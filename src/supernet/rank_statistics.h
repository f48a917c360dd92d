#pragma once
#include <optional>
#include <span>

namespace mindpipe {

/// How far two orders of the same things agree, from -1 to 1, and how probable a value that far from 0 is
/// where they have nothing to do with each other (both sides).
struct RankCorrelation {
  double value, p;
};

// Numbers must be as many on both sides; a NaN is refused. There is no value for fewer than two numbers and
// where all of a side are equal.

/// Kendall's tau-b. p is exact without ties for up to 33 numbers, and where all pairs but one go one way;
/// else of a normal distribution with the variance that ties leave.
std::optional<RankCorrelation> kendall_tau(std::span<const double> a, std::span<const double> b);

/// Spearman's rho, where equal numbers share the mean of their ranks. p is of Student's distribution with two
/// degrees of freedom fewer than numbers; two numbers show nothing: 1.
std::optional<RankCorrelation> spearman_rho(std::span<const double> a, std::span<const double> b);

/// What is lost by trust in scores: the lowest truth among the `best` lowest scores, minus the lowest of all.
/// Where scores are equal the first ones count as the lower.
double regret(std::span<const double> scores, std::span<const double> truths, int best);

}  // namespace mindpipe
