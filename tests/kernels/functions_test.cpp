#include "cpu/simd/function_kernels.h"

#include <cstring>

#include "core/sha256.h"
#include "cpu/simd/elementwise_kernels.h"
#include "golden_lines.h"
#include "kernels/operand.h"

// Functions of one number on avx2 and avx512, which are one class: bit for bit, of every f32 there is where
// MINDPIPE_ALL_NUMBERS is set (make test-functions), of each 997th otherwise.
namespace {

using namespace mindpipe;
using namespace mindpipe::testing;

constexpr std::int64_t at_once = 1 << 16;

struct OneNumber {
  std::string name;
  RealFunction function = RealFunction::exp;
  bool rounds_to_bf16 = false;
};
void PrintTo(const OneNumber& one, std::ostream* to) { *to << one.name; }

std::vector<OneNumber> functions() {
  const char* const names[real_functions] = {
      "exp",        "exp_below_zero", "power_of_2",       "log",
      "erf",        "normal_share",   "sigmoid",          "rest_of_sigmoid",
      "relu",       "gelu",           "gelu_exact",       "silu",
      "relu_slope", "gelu_slope",     "gelu_exact_slope", "silu_slope"};
  std::vector<OneNumber> all{{"rounded_to_bf16", {}, true}};
  for (int i = 0; i < real_functions; ++i) all.push_back({names[i], static_cast<RealFunction>(i), false});
  return all;
}

void apply(Isa isa, const OneNumber& one, const float* x, float* y, std::int64_t count) {
  if (!one.rounds_to_bf16)
    return MINDPIPE_PICK_KERNELS(isa, function_kernels).apply(one.function, x, y, count);
  std::vector<std::uint16_t> rounded(static_cast<std::size_t>(count));
  const ElementwiseKernels& kernels = MINDPIPE_PICK_KERNELS(isa, elementwise_kernels);
  const int f32 = dtype_index(DType::f32), bf16 = dtype_index(DType::bf16);
  kernels.convert[f32][bf16](x, rounded.data(), 0, count);
  kernels.convert[bf16][f32](rounded.data(), y, 0, count);
}

/// Calls see(x) for arguments, many at a time: each `step`-th of all 2^32.
template <class See>
void for_arguments(std::uint64_t step, const See& see) {
  std::vector<float> x;
  for (std::uint64_t bits = 0; bits < std::uint64_t{1} << 32; bits += step) {
    x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    if (std::ssize(x) < at_once && bits + step < std::uint64_t{1} << 32) continue;
    see(x);
    x.clear();
  }
}

class FunctionOf : public ::testing::TestWithParam<OneNumber> {};

TEST_P(FunctionOf, OneNumberIsOneOnBothSetsOfAClass) {
  if (!processor_has(Isa::avx512)) GTEST_SKIP() << "this processor has no avx512";
  const std::uint64_t step = std::getenv("MINDPIPE_ALL_NUMBERS") != nullptr ? 1 : 997;
  std::vector<float> one(at_once), other(at_once);
  std::int64_t arguments = 0, differ = 0;
  for_arguments(step, [&](const std::vector<float>& x) {
    apply(Isa::avx2, GetParam(), x.data(), one.data(), std::ssize(x));
    apply(Isa::avx512, GetParam(), x.data(), other.data(), std::ssize(x));
    arguments += std::ssize(x);
    if (std::memcmp(one.data(), other.data(), x.size() * sizeof(float)) == 0) return;
    for (std::size_t i = 0; i < x.size(); ++i)
      if (std::bit_cast<std::uint32_t>(one[i]) != std::bit_cast<std::uint32_t>(other[i]) && ++differ <= 3)
        ADD_FAILURE() << fmt::format("of {} ({:#010x}): {} and {}", x[i], std::bit_cast<std::uint32_t>(x[i]),
                                     one[i], other[i]);
  });
  EXPECT_EQ(differ, 0);
  std::cout << arguments << " arguments\n";
}

INSTANTIATE_TEST_SUITE_P(Functions, FunctionOf, ::testing::ValuesIn(functions()),
                         [](const auto& one) { return one.param.name; });

/// The digest of all functions at each 9973rd f32.
std::string digest_on(Isa isa) {
  Sha256 digest;
  std::vector<float> y(at_once);
  for (const OneNumber& one : functions())
    for_arguments(9973, [&](const std::vector<float>& x) {
      apply(isa, one, x.data(), y.data(), std::ssize(x));
      digest.add(y.data(), x.size() * sizeof(float));
    });
  return to_string(digest.end()).substr(0, 16);
}

// The digests were made on a Zen 4, and are those of an Intel Xeon.
TEST(FunctionsOfOneNumber, HaveTheBitsOfOtherMachines) {
  const std::set<std::string> golden = golden_lines("function_digests.txt");
  for (const Isa isa : instruction_sets()) {
    const std::string line = fmt::format("kernels {}: {}", name_of(isa), digest_on(isa));
    EXPECT_TRUE(golden.contains(line)) << line;
  }
}

}  // namespace
