#include "supernet/rank_statistics.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <numeric>
#include <vector>

#include "core/check.h"

namespace mindpipe {
namespace {

void check_numbers(std::span<const double> a, std::span<const double> b) {
  MP_CHECK(a.size() == b.size(), "{} numbers beside {}", a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    MP_REQUIRE(!std::isnan(a[i]) && !std::isnan(b[i]), Exit::bad_data,
               "number {} of {} is none, and has no rank (leave it out on both sides)", i + 1, a.size());
}

/// How many numbers each group of equal ones has, in ascending order of the numbers.
std::vector<std::int64_t> sizes_of_ties(std::span<const double> numbers) {
  std::vector<double> sorted(numbers.begin(), numbers.end());
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 0; i < sorted.size(); ++i)
    if (i > 0 && sorted[i] == sorted[i - 1]) ++sizes.back();
    else sizes.push_back(1);
  return sizes;
}

/// What is said of n numbers by a polynomial in the size of each group of equal ones, added up.
template <class Polynomial>
double sum_over_ties(const std::vector<std::int64_t>& sizes, Polynomial polynomial) {
  double sum = 0;
  for (const std::int64_t size : sizes) sum += polynomial(static_cast<double>(size));
  return sum;
}

/// The probability, on both sides, of at most `few` pairs in the rarer direction of all orders of n numbers.
double exact_p(std::int64_t n, std::int64_t few) {
  // Orders of j numbers with k pairs reversed, as shares of all: the j-th number comes before 0 to j - 1
  // others.
  std::vector<double> shares(static_cast<std::size_t>(few + 1));
  shares[0] = 1;
  for (std::int64_t j = 2; j <= n; ++j)
    for (std::int64_t k = few; k >= 0; --k) {
      double sum = 0;
      for (std::int64_t before = std::max<std::int64_t>(0, k - j + 1); before <= k; ++before)
        sum += shares[static_cast<std::size_t>(before)];
      shares[static_cast<std::size_t>(k)] = sum / static_cast<double>(j);
    }
  return std::min(1.0, 2 * std::accumulate(shares.begin(), shares.end(), 0.0));
}

/// The two-sided probability of `surplus` more pairs one way than the other, with the correction for ties.
double normal_p(double n, double surplus, const std::vector<std::int64_t>& ties_of_a,
                const std::vector<std::int64_t>& ties_of_b) {
  const auto pairs = [](double t) { return t * (t - 1); };
  const auto triples = [](double t) { return t * (t - 1) * (t - 2); };
  const auto weights = [](double t) { return t * (t - 1) * (2 * t + 5); };
  const double variance =
      (weights(n) - sum_over_ties(ties_of_a, weights) - sum_over_ties(ties_of_b, weights)) / 18 +
      sum_over_ties(ties_of_a, pairs) * sum_over_ties(ties_of_b, pairs) / (2 * pairs(n)) +
      sum_over_ties(ties_of_a, triples) * sum_over_ties(ties_of_b, triples) / (9 * triples(n));
  return std::erfc(std::abs(surplus) / std::sqrt(2 * variance));
}

/// Twice each number's rank from 1, less n + 1, so that they add up to 0; equal numbers share the mean.
std::vector<std::int64_t> centered_ranks(std::span<const double> numbers) {
  std::vector<double> sorted(numbers.begin(), numbers.end());
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::int64_t> ranks;
  for (const double number : numbers) {
    const auto [begin, end] = std::equal_range(sorted.begin(), sorted.end(), number);
    ranks.push_back((begin - sorted.begin()) + (end - sorted.begin()) - std::ssize(numbers));
  }
  return ranks;
}

double product(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  return static_cast<double>(std::inner_product(a.begin(), a.end(), b.begin(), std::int64_t{0}));
}

/// 1 / B(a, 1/2), for a that is half a whole number.
double one_over_beta(double a) {
  double at = std::fmod(a, 1) == 0 ? 1 : 0.5, value = at == 1 ? 0.5 : std::numbers::inv_pi;
  for (; at < a; at += 1) value *= (at + 0.5) / at;
  return value;
}

/// The incomplete beta function's continued fraction (Lentz), without its factors; good for x up to about the
/// distribution's mean.
double beta_fraction(double x, double a, double b) {
  double c = 1, d = 1 / (1 - (a + b) * x / (a + 1)), value = d;
  for (int m = 1; m < 10000; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    double change = 1;
    for (const double factor : {even, odd}) {
      d = 1 / (1 + factor * d);
      c = 1 + factor / c;
      change = c * d;
      value *= change;
    }
    if (std::abs(change - 1) < 1e-16) break;
  }
  return value;
}

/// The probability, on both sides, of a correlation that leaves a share `unexplained` = 1 - r^2 of the
/// variance, by Student's distribution: the incomplete beta function I(degrees / 2, 1 / 2) of that share.
double student_p(double degrees, double unexplained) {
  if (unexplained <= 0) return 0;
  if (unexplained >= 1) return 1;
  const double a = degrees / 2, b = 0.5;
  const double factors = one_over_beta(a) * std::exp(a * std::log(unexplained)) * std::sqrt(1 - unexplained);
  if (unexplained < (a + 1) / (a + b + 2)) return factors / a * beta_fraction(unexplained, a, b);
  return 1 - factors / b * beta_fraction(1 - unexplained, b, a);
}

}  // namespace

std::optional<RankCorrelation> kendall_tau(std::span<const double> a, std::span<const double> b) {
  check_numbers(a, b);
  const std::vector<std::int64_t> ties_of_a = sizes_of_ties(a), ties_of_b = sizes_of_ties(b);
  if (ties_of_a.size() < 2 || ties_of_b.size() < 2) return std::nullopt;
  std::int64_t agree = 0, disagree = 0, differ_in_a = 0, differ_in_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t k = 0; k < i; ++k) {
      differ_in_a += a[i] != a[k];
      differ_in_b += b[i] != b[k];
      agree += (a[i] < a[k] && b[i] < b[k]) || (a[i] > a[k] && b[i] > b[k]);
      disagree += (a[i] < a[k] && b[i] > b[k]) || (a[i] > a[k] && b[i] < b[k]);
    }
  const auto surplus = static_cast<double>(agree - disagree);
  const double most = std::sqrt(static_cast<double>(differ_in_a) * static_cast<double>(differ_in_b));
  const bool no_ties = ties_of_a.size() == a.size() && ties_of_b.size() == b.size();
  const std::int64_t few = std::min(agree, disagree);
  const double p = no_ties && (a.size() <= 33 || few <= 1)
                       ? exact_p(std::ssize(a), few)
                       : normal_p(static_cast<double>(a.size()), surplus, ties_of_a, ties_of_b);
  return RankCorrelation{surplus / most, p};
}

std::optional<RankCorrelation> spearman_rho(std::span<const double> a, std::span<const double> b) {
  check_numbers(a, b);
  const std::vector<std::int64_t> ranks_of_a = centered_ranks(a), ranks_of_b = centered_ranks(b);
  const double of_a = product(ranks_of_a, ranks_of_a), of_b = product(ranks_of_b, ranks_of_b);
  if (of_a == 0 || of_b == 0) return std::nullopt;
  const double rho = product(ranks_of_a, ranks_of_b) / std::sqrt(of_a * of_b);
  if (a.size() == 2) return RankCorrelation{rho, 1};
  return RankCorrelation{rho, student_p(static_cast<double>(a.size() - 2), (1 - rho) * (1 + rho))};
}

double regret(std::span<const double> scores, std::span<const double> truths, int best) {
  check_numbers(scores, truths);
  MP_CHECK(best > 0 && !scores.empty(), "the {} best of {}", best, scores.size());
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t one, std::size_t other) { return scores[one] < scores[other]; });
  order.resize(std::min(order.size(), static_cast<std::size_t>(best)));
  double found = truths[order.front()];
  for (const std::size_t at : order) found = std::min(found, truths[at]);
  return found - *std::min_element(truths.begin(), truths.end());
}

}  // namespace mindpipe
