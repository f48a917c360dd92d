#include "cpu/simd/function_kernels.h"

#include <atomic>
#include <cstring>

#include "core/sha256.h"
#include "cpu/parallel.h"
#include "cpu/simd/elementwise_kernels.h"
#include "golden_lines.h"
#include "kernels/operand.h"

// Functions of one number on avx2 and avx512, which are one class: bit for bit, of every f32 there is where
// MINDPIPE_ALL_NUMBERS is set (make test-functions), of each 997th otherwise.
namespace {

using namespace mindpipe;
using namespace mindpipe::testing;

constexpr std::int64_t at_once = 1 << 13;  // the first caches hold them and both results

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
  std::uint16_t rounded[at_once];
  const ElementwiseKernels& kernels = MINDPIPE_PICK_KERNELS(isa, elementwise_kernels);
  const int f32 = dtype_index(DType::f32), bf16 = dtype_index(DType::bf16);
  kernels.convert[f32][bf16](x, rounded, 0, count);
  kernels.convert[bf16][f32](rounded, y, 0, count);
}

/// Calls see(x, count) for arguments, many at a time: each `step`-th of all 2^32. One thread sees them in
/// order.
template <class See>
void for_arguments(int threads, std::uint64_t step, const See& see) {
  const std::uint64_t all = ((std::uint64_t{1} << 32) + step - 1) / step, at_most = at_once;
  in_shares(threads, static_cast<int>((all + at_most - 1) / at_most), [&](int, int block) {
    const std::uint64_t first = at_most * static_cast<std::uint64_t>(block);
    const auto count = static_cast<std::int64_t>(std::min(at_most, all - first));
    float x[at_once];
    auto bits = static_cast<std::uint32_t>(first * step);
    for (std::int64_t i = 0; i < count; ++i, bits += static_cast<std::uint32_t>(step))
      x[i] = std::bit_cast<float>(bits);
    see(x, count);
  });
}

class FunctionOf : public ::testing::TestWithParam<OneNumber> {};

TEST_P(FunctionOf, OneNumberIsOneOnBothSetsOfAClass) {
  if (!processor_has(Isa::avx512)) GTEST_SKIP() << "this processor has no avx512";
  const std::uint64_t step = std::getenv("MINDPIPE_ALL_NUMBERS") != nullptr ? 1 : 997;
  std::atomic<std::int64_t> arguments = 0, differ = 0;
  for_arguments(omp_get_max_threads(), step, [&](const float* x, std::int64_t count) {
    float one[at_once], other[at_once];
    apply(Isa::avx2, GetParam(), x, one, count);
    apply(Isa::avx512, GetParam(), x, other, count);
    arguments += count;
    if (std::memcmp(one, other, static_cast<std::size_t>(count) * sizeof(float)) == 0) return;
    for (std::int64_t i = 0; i < count; ++i)
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
  for (const OneNumber& one : functions())
    for_arguments(1, 9973, [&](const float* x, std::int64_t count) {
      float y[at_once];
      apply(isa, one, x, y, count);
      digest.add(y, static_cast<std::size_t>(count) * sizeof(float));
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
