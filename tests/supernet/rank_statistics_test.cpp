#include "supernet/rank_statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/check.h"

namespace mindpipe {
namespace {

using Numbers = std::vector<double>;

void expect_equal(double got, double golden) { EXPECT_NEAR(got, golden, 1e-12 * std::abs(golden)); }

/// What scipy 1.17.1 says (kendalltau, spearmanr) of made-up numbers: `values` different ones, of which the
/// second side follows the first by `slope`.
struct Golden {
  std::uint32_t seed;
  int count, values, slope;
  double tau, tau_p, rho, rho_p;
};
constexpr int no_ties = 1000000;
const Golden goldens[] = {
    {1, 10, no_ties, 0, 0.15555555555555553, 0.6006536596119929, 0.22424242424242422, 0.5334005612725947},
    {2, 33, no_ties, 0, 0.2196969696969697, 0.07461010465966822, 0.32987967914438504, 0.060818772885464036},
    {3, 33, no_ties, 1, 0.5454545454545455, 2.6850869427447933e-06, 0.707553475935829, 4.132507786693833e-06},
    {4, 34, no_ties, 0, -0.026737967914438505, 0.8240284714799639, -0.029793735676088614, 0.8671617940568104},
    {5, 12, 5, 0, 0.16520019709822928, 0.5089580277142391, 0.27964689231629175, 0.3786990540980072},
    {6, 40, 6, 1, 0.5964452070389465, 1.498199168895124e-06, 0.7230501799636821, 1.3673492739326065e-07},
    {7, 100, 4, 0, 0.11112601231473469, 0.18543932802018903, 0.13607826674170095, 0.1770278743162942},
    {8, 200, no_ties, 1, 0.4782532225937424, 8.558485359326826e-24, 0.673923600811418, 7.768216746718432e-28},
    {9, 3, no_ties, 0, 0.33333333333333337, 1.0, 0.5, 0.6666666666666666},
    {10, 64, no_ties, 1, 0.4662698412698412, 5.151373171761269e-08, 0.6497252747252746,
     6.292811867295249e-09},
    {11, 1000, 50, 0, -0.037212561929894736, 0.08409545400463457, -0.054662181511729, 0.08404205859316796},
    {12, 16, no_ties, 3, 0.7666666666666667, 4.724511813632184e-06, 0.9235294117647058,
     3.3439000100406933e-07},
};

/// Both sides of a golden case, from a generator that a script of five lines has too.
std::pair<Numbers, Numbers> numbers_of(const Golden& golden) {
  std::uint32_t state = golden.seed;
  const auto draw = [&] {
    state = (state * 1103515245u + 12345u) % (1u << 31);
    return static_cast<double>((state >> 16) % static_cast<std::uint32_t>(golden.values));
  };
  Numbers a, b;
  for (int i = 0; i < golden.count; ++i) {
    a.push_back(draw());
    b.push_back(draw() + golden.slope * a.back());
  }
  return {a, b};
}

TEST(RankCorrelations, AreThoseOfScipy) {
  for (const Golden& golden : goldens) {
    SCOPED_TRACE(golden.seed);
    const auto [a, b] = numbers_of(golden);
    const auto tau = kendall_tau(a, b), rho = spearman_rho(a, b);
    ASSERT_TRUE(tau && rho);
    expect_equal(tau->value, golden.tau);
    expect_equal(tau->p, golden.tau_p);
    expect_equal(rho->value, golden.rho);
    expect_equal(rho->p, golden.rho_p);
    expect_equal(kendall_tau(b, a)->p, golden.tau_p);
    expect_equal(spearman_rho(b, a)->value, golden.rho);
  }
}

Numbers counted(int count) {
  Numbers numbers;
  for (int i = 0; i < count; ++i) numbers.push_back(i);
  return numbers;
}

TEST(RankCorrelations, OfTwoNumbersShowNothing) {
  for (const double sign : {1.0, -1.0}) {
    const Numbers a{1, 2}, b{5, 5 + sign};
    EXPECT_EQ(kendall_tau(a, b)->value, sign);
    EXPECT_EQ(kendall_tau(a, b)->p, 1);
    EXPECT_EQ(spearman_rho(a, b)->value, sign);
    EXPECT_EQ(spearman_rho(a, b)->p, 1) << "scipy has no number here";
  }
}

TEST(RankCorrelations, OfFullAgreementAreOne) {
  expect_equal(kendall_tau(counted(3), counted(3))->p, 1.0 / 3);
  EXPECT_EQ(spearman_rho(counted(3), counted(3))->p, 0);
  expect_equal(kendall_tau(counted(40), counted(40))->p, 2.451234878256772e-48);  // exact, however many
  EXPECT_LT(kendall_tau(counted(200), counted(200))->p, 1e-300);
  EXPECT_EQ(kendall_tau(counted(200), counted(200))->value, 1);
  Numbers swapped = counted(40);
  std::swap(swapped[0], swapped[1]);
  expect_equal(kendall_tau(counted(40), swapped)->p, 9.804939513027087e-47);
  expect_equal(spearman_rho(counted(40), swapped)->value, 0.9998123827392121);
  const Numbers tied{1, 2, 2};
  expect_equal(kendall_tau(tied, tied)->value, 1);
  expect_equal(kendall_tau(tied, tied)->p, 0.15729920705028516);
}

TEST(RankCorrelations, HaveNoValueWhereASideIsAllEqual) {
  const Numbers equal{3, 3, 3}, other{1, 2, 3};
  EXPECT_FALSE(kendall_tau(equal, other));
  EXPECT_FALSE(kendall_tau(other, equal));
  EXPECT_FALSE(spearman_rho(equal, other));
  EXPECT_FALSE(spearman_rho(other, equal));
  for (const int count : {0, 1}) {
    EXPECT_FALSE(kendall_tau(counted(count), counted(count)));
    EXPECT_FALSE(spearman_rho(counted(count), counted(count)));
  }
}

TEST(RankCorrelations, RefuseWhatIsNoNumberAndRankTheInfinite) {
  Numbers a = counted(4);
  a[2] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(kendall_tau(a, counted(4)), Error);
  EXPECT_THROW(spearman_rho(counted(4), a), Error);
  EXPECT_THROW(regret(a, counted(4), 1), Error);
  a[2] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(kendall_tau(a, counted(4))->value, 4.0 / 6) << "it is the largest, and comes third";
}

TEST(Regret, IsWhatTheBestByScoreMissTheBestByTruth) {
  const Numbers scores{0.5, 0.1, 0.3, 0.2, 0.4}, truths{1.0, 3.0, 1.5, 2.0, 2.5};
  EXPECT_EQ(regret(scores, truths, 1), 2.0);
  EXPECT_EQ(regret(scores, truths, 2), 1.0);
  EXPECT_EQ(regret(scores, truths, 3), 0.5);
  EXPECT_EQ(regret(scores, truths, 5), 0.0);
  EXPECT_EQ(regret(scores, truths, 9), 0.0) << "more than there are are all";
  const Numbers equal{1, 1, 1};
  EXPECT_EQ(regret(equal, Numbers{5, 4, 3}, 1), 2.0) << "of equal scores the first";
}

}  // namespace
}  // namespace mindpipe
