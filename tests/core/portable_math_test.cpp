#include "core/portable_math.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "core/random.h"
#include "core/sha256.h"
#include "golden_lines.h"

// Functions whose bits no machine's C library changes.
namespace mindpipe {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// A function beside its true value, found in 64 bits, and the arguments that trainings have.
struct Case {
  const char* name;
  double (*own)(double);
  long double (*wide)(long double);
  double low, high;
};
double power_of_base(double x) { return portable::pow(10000, x); }
double power_of_rate(double x) { return portable::pow(static_cast<double>(0.999f), std::floor(x)); }
const Case cases[] = {
    {"exp", portable::exp, [](long double x) { return std::exp(x); }, -90, 20},
    {"log of sums", portable::log, [](long double x) { return std::log(x); }, 1, 1e5},
    {"log below 1", portable::log, [](long double x) { return std::log(x); }, 1e-9, 1},
    {"sin", portable::sin, [](long double x) { return std::sin(x); }, -1e5, 1e5},
    {"cos", portable::cos, [](long double x) { return std::cos(x); }, 0, 1e5},
    {"sin of small angles", portable::sin, [](long double x) { return std::sin(x); }, 0, 1e-2},
    {"cos of rates", portable::cos, [](long double x) { return std::cos(x); }, 0, 3.2},
    {"sin of large angles", portable::sin, [](long double x) { return std::sin(x); }, 0, 1e12},
    {"powers of a rotary base", power_of_base, [](long double x) { return std::pow(10000.0L, x); }, -1, 0},
    {"powers of a decay", power_of_rate,
     [](long double x) { return std::pow(static_cast<long double>(0.999f), std::floor(x)); }, 1, 1e5},
};
constexpr int arguments = 50000;

double argument(const Case& one, int i) {
  const RandomStream stream{1, purpose_of(one.name), 0, 0};
  return one.low + (one.high - one.low) * stream.uniform(static_cast<std::uint64_t>(i));
}

TEST(PortableMath, IsTheDoubleNextToTheTrueValue) {
  for (const Case& one : cases) {
    int undecided = 0;
    for (int i = 0; i < arguments; ++i) {
      const double x = argument(one, i);
      const long double about = one.wide(static_cast<long double>(x)), error = std::abs(about) * 0x1p-62L;
      const auto low = static_cast<double>(about - error), high = static_cast<double>(about + error);
      undecided += low != high;
      ASSERT_TRUE(low != high || one.own(x) == low) << one.name << " of " << x;
    }
    EXPECT_LT(undecided, arguments / 100) << one.name;
  }
}

// The digest was made on a Zen 4 under glibc 2.36, and is that of an Intel Xeon.
TEST(PortableMath, HasTheBitsOfOtherMachines) {
  Sha256 digest;
  for (const Case& one : cases)
    for (int i = 0; i < arguments; ++i) {
      const auto bits = std::bit_cast<std::uint64_t>(one.own(argument(one, i)));
      digest.add(&bits, sizeof bits);
    }
  const std::string line = "portable: " + to_string(digest.end());
  EXPECT_TRUE(golden_lines("function_digests.txt").contains(line)) << line;
}

TEST(PortableMath, KnowsTheEndsOfItsFunctions) {
  EXPECT_EQ(portable::exp(0), 1);
  EXPECT_EQ(portable::exp(-infinity), 0);
  EXPECT_EQ(portable::exp(infinity), infinity);
  EXPECT_EQ(portable::exp(800), infinity);
  EXPECT_EQ(portable::exp(-800), 0);
  EXPECT_EQ(portable::exp(-745), std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(portable::log(1), 0);
  EXPECT_EQ(portable::log(0), -infinity);
  EXPECT_EQ(portable::log(infinity), infinity);
  EXPECT_EQ(portable::log(0x1p-1074), -1074 * std::log(2.0));
  EXPECT_EQ(portable::pow(0, 3), 0);
  EXPECT_EQ(portable::pow(0, 0), 1);
  EXPECT_EQ(portable::pow(0.5, 4), 0.0625);
  EXPECT_EQ(portable::pow(3, 5), 243);
  EXPECT_EQ(portable::pow(10, -400), 0);
  EXPECT_TRUE(std::signbit(portable::sin(-0.0)));
  EXPECT_EQ(portable::cos(0), 1);
  EXPECT_EQ(portable::sin(-1), -portable::sin(1));
  for (const double none : {std::nan(""), infinity}) {
    EXPECT_TRUE(std::isnan(portable::sin(none)));
    EXPECT_TRUE(std::isnan(portable::cos(none)));
  }
  for (const auto function : {portable::exp, portable::log}) EXPECT_TRUE(std::isnan(function(std::nan(""))));
  EXPECT_TRUE(std::isnan(portable::log(-1)));
}

}  // namespace
}  // namespace mindpipe
