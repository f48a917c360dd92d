#include "kernels/operand.h"
#include "kernels/reference.h"

#include "cpu/simd/function_kernels.h"

using namespace mindpipe;
using namespace mindpipe::testing;

namespace {

constexpr Activation curved[] = {Activation::relu, Activation::gelu, Activation::silu,
                                 Activation::gelu_exact};
constexpr std::int64_t some_sizes[] = {1, 7, 33, 1000};

/// Units in the last place of a float between what was found and what is right.
long double units_between(float found, long double right) {
  const float near = static_cast<float>(right), above = std::nextafter(std::abs(near), INFINITY);
  const long double unit = static_cast<long double>(above) - static_cast<long double>(std::abs(near));
  return std::abs(static_cast<long double>(found) - right) / unit;
}

double activation_curve(Activation activation, double x) {
  if (activation == Activation::relu) return x < 0 ? 0 : x;
  if (activation == Activation::silu) return x * reference::sigmoid(x);
  if (activation == Activation::gelu_exact) return x / 2 * std::erfc(-x / std::sqrt(2.0));
  return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

}  // namespace

TEST(Activations, ErfIsWithinTwoUnitsInTheLastPlace) {
  std::vector<float> x, y;
  for (std::uint32_t bits = 0; bits < 0x7f800000u; bits += 4099) {  // half a million floats of every size
    x.push_back(std::bit_cast<float>(bits));
    x.push_back(-x.back());
  }
  for (int i = -40000; i <= 40000; ++i) x.push_back(static_cast<float>(i) * 1.0e-4f);
  y.resize(x.size());
  for (Isa isa : instruction_sets()) {
    const auto count = static_cast<std::int64_t>(x.size());
    const FunctionKernels& kernels = MINDPIPE_PICK_KERNELS(isa, function_kernels);
    kernels.apply(RealFunction::erf, x.data(), y.data(), count);
    long double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i)
      worst = std::max(worst, units_between(y[i], std::erf(static_cast<long double>(x[i]))));
    EXPECT_LE(worst, 2) << name_of(isa);
    const float odd[] = {INFINITY, -INFINITY, NAN, -0.0f};
    float of_odd[4];
    kernels.apply(RealFunction::erf, odd, of_odd, 4);
    EXPECT_EQ(of_odd[0], 1);
    EXPECT_EQ(of_odd[1], -1);
    EXPECT_TRUE(std::isnan(of_odd[2]));
    EXPECT_TRUE(of_odd[3] == 0 && std::signbit(of_odd[3]));
  }
}

TEST(Activations, GradientsGoThroughTheSlopeOfAnActivation) {
  for_every_kind([](const Cpu& cpu, DType dtype) {
    for (Activation activation : curved)
      for (std::int64_t n : some_sizes) {
        const Operand dy = Operand::random({n}, dtype, "dy"),
                      before = Operand::random({n}, dtype, "before", 3);
        Operand dx({n}, dtype);
        std::vector<double> want = dy.values();
        for (std::int64_t i = 0; i < n; ++i) {
          const double x = before[i], h = 1e-5;
          want[static_cast<std::size_t>(i)] *=
              (activation_curve(activation, x + h) - activation_curve(activation, x - h)) / (2 * h);
        }
        cpu->activation_backward({dy, before, activation, dx});
        expect_close(dx, want, dtype == DType::f64 ? 1e4 : 4);  // differences are good to 1e-10
        Operand in_place = dy.copy();
        cpu->activation_backward({in_place, before, activation, in_place});
        EXPECT_TRUE(same_bits(dx, in_place));
      }
  });
}

TEST(Activations, SlopesAreExactlyZeroAndOneFarOut) {
  for_every_kind([](const Cpu& cpu, DType dtype) {
    Operand dy({2}, dtype), before({2}, dtype), dx({2}, dtype);
    for (int i = 0; i < 2; ++i) {
      dy.set(i, 3);
      before.set(i, i == 0 ? -200 : 200);
    }
    for (Activation activation : curved) {
      cpu->activation_backward({dy, before, activation, dx});
      EXPECT_EQ(dx[1], 3);
      EXPECT_NEAR(dx[0], 0, 1e-80);
    }
    EXPECT_THROW(cpu->activation_backward({dy, before, Activation::none, dx}), Error);
  });
}

TEST(Activations, ExactGeluFarBelowZeroIsNoRestOfOne) {
  std::vector<float> z;
  for (int i = -1200; i <= 1200; ++i) z.push_back(static_cast<float>(i) * 0.01f);
  const auto count = static_cast<std::int64_t>(z.size());
  for (Isa isa : instruction_sets()) {
    const Operand x({count, 1}, DType::f32), w({1, 1}, DType::f32), y({count, 1}, DType::f32);
    std::copy(z.begin(), z.end(), x.tensor().as<float>());
    w.tensor().as<float>()[0] = 1;
    Cpu(1, name_of(isa))->linear({.x = x, .w = w, .activation = Activation::gelu_exact, .y = y});
    for (std::int64_t i = 0; i < count; ++i) {
      const double want = activation_curve(Activation::gelu_exact, x[i]);
      ASSERT_NEAR(y[i], want, x[i] < -6 ? 1e-8 : 1e-4 * std::abs(want)) << name_of(isa) << " " << x[i];
    }
  }
}

TEST(Scale, MultipliesAndRoundsOnce) {
  for_every_kind([](const Cpu& cpu, DType dtype) {
    for (std::int64_t n : some_sizes) {
      const Operand x = Operand::random({n}, dtype, "x");
      Operand y({n}, dtype);
      std::vector<double> want = x.values();
      for (double& w : want) w *= std::sqrt(512.0);
      cpu->scale({x, std::sqrt(512.0), y});
      expect_close(y, want);
      Operand in_place = x.copy();
      cpu->scale({in_place, std::sqrt(512.0), in_place});
      EXPECT_TRUE(same_bits(y, in_place));
    }
  });
}

TEST(Activations, ThreadsDoNotChangeABit) {
  expect_same_bits_on_threads([](const Cpu& cpu, DType dtype) {
    const std::int64_t n = 100003;
    const Operand dy = Operand::random({n}, dtype, "dy"), before = Operand::random({n}, dtype, "before", 3);
    std::vector<Operand> out{Operand({n}, dtype), Operand({n}, dtype)};
    cpu->activation_backward({dy, before, Activation::gelu_exact, out[0]});
    cpu->scale({dy, 0.3, out[1]});
    return out;
  });
}

TEST(Activations, ARangeAloneHasTheBitsThatItHasInsideTheWhole) {
  for_every_kind([](const Cpu& cpu, DType dtype) {
    const Operand dy = Operand::random({301}, dtype, "dy"),
                  before = Operand::random({301}, dtype, "before", 3);
    const Operand whole({301}, dtype), part({301}, dtype);
    for (Activation activation : curved) {
      cpu->activation_backward({dy, before, activation, whole});
      for (std::int64_t first : {0, 3, 77, 300}) {
        const std::int64_t count = std::min<std::int64_t>(50, 301 - first);
        const Tensor out = part.tensor().range(0, count);
        cpu->activation_backward(
            {dy.tensor().range(first, count), before.tensor().range(first, count), activation, out});
        EXPECT_TRUE(same_bits(out, whole.tensor().range(first, count)));
      }
    }
  });
}
