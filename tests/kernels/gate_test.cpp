#include "kernels/operand.h"
#include "kernels/reference.h"

using namespace mindpipe;
using namespace mindpipe::testing;

namespace {

constexpr std::int64_t gate_widths[] = {1, 7, 16, 33, 200};

}  // namespace

TEST(Gate, AndItsGradientMatchTheFormula) {
  for_every_kind([](const Cpu& cpu, DType dtype) {
    for (std::int64_t cols : gate_widths) {
      const Operand both = Operand::random({3, 2 * cols}, dtype, "both", 3),
                    dy = Operand::random({3, cols}, dtype, "dy");
      Operand y({3, cols}, dtype), d({3, 2 * cols}, dtype), in_place = both.copy();
      std::vector<double> want(static_cast<std::size_t>(y.count())), gradient(want.size() * 2);
      for (std::int64_t n = 0; n < 3; ++n)
        for (std::int64_t j = 0; j < cols; ++j) {
          const std::int64_t at = n * cols + j, low = 2 * n * cols + j, high = low + cols;
          const double s = reference::sigmoid(both[high]);
          want[static_cast<std::size_t>(at)] = both[low] * s;
          gradient[static_cast<std::size_t>(low)] = dy[at] * s;
          gradient[static_cast<std::size_t>(high)] = dy[at] * both[low] * s * (1 - s);
        }
      cpu->gate({both, y});
      cpu->gate_backward({dy, both, d});
      cpu->gate_backward({dy, in_place, in_place});
      expect_close(y, want, 2);
      expect_close(d, gradient, 2);
      EXPECT_TRUE(same_bits(d, in_place));
    }
  });
}

TEST(Gate, StaysFiniteForExtremeGates) {
  for_every_kind([](const Cpu& cpu, DType dtype) {
    Operand both({1, 4}, dtype), dy({1, 2}, dtype), y({1, 2}, dtype), d({1, 4}, dtype);
    for (int i = 0; i < 4; ++i) both.set(i, i == 2 ? -1000 : i == 3 ? 1000 : 3);
    dy.set(0, 1);
    dy.set(1, 1);
    cpu->gate({both, y});
    cpu->gate_backward({dy, both, d});
    expect_close(y, {0, 3});
    expect_close(d, {0, 1, 0, 0});
  });
}

TEST(Activation, AloneIsWhatAProductTakesAlong) {
  for_every_kind([](const Cpu& cpu, DType dtype) {
    for (Activation activation :
         {Activation::relu, Activation::gelu, Activation::silu, Activation::gelu_exact}) {
      const std::int64_t n = 33;
      const Operand x = Operand::random({1, n}, dtype, "x", 2);
      Operand one({n, n}, dtype), y({1, n}, dtype), fused({1, n}, dtype), in_place = x.copy();
      for (std::int64_t i = 0; i < n; ++i) one.set(i * n + i, 1);
      cpu->activation({x, activation, y});
      cpu->activation({in_place, activation, in_place});
      cpu->linear({.x = x, .w = one, .activation = activation, .y = fused});
      expect_close(y, fused.values());
      EXPECT_TRUE(same_bits(y, in_place));
    }
  });
  const Cpu cpu;
  Operand y({8}, DType::f32);
  EXPECT_THROW(cpu->activation({Operand({8}, DType::f32), Activation::none, y}), Error);
}

TEST(Padding, OfRowsIsClearedAndOfColumnsIsZeros) {
  for_every_kind([](const Cpu& cpu, DType dtype) {
    for (std::int64_t cols : gate_widths) {
      Operand x = Operand::random({3, 4, cols}, dtype, "x"), y({3, 4, cols}, dtype);
      const Operand lengths = Operand::tokens({0, 3, 9});
      std::vector<double> want = x.values();
      for (std::int64_t n : {0, 1, 2, 3, 7})
        for (std::int64_t j = 0; j < cols; ++j) {
          want[static_cast<std::size_t>(n * cols + j)] = 0;
          x.set(n * cols + j, NAN);
        }
      cpu->clear_padding({x, lengths, y});
      EXPECT_EQ(y.values(), want);
      cpu->clear_padding({x, lengths, x});
      EXPECT_TRUE(same_bits(x, y));

      const std::int64_t wide = cols + 5;
      const Operand sum = Operand::random({3, 4, wide}, dtype, "sum");
      Operand padded = Operand::random({3, 4, wide}, dtype, "stale"), summed = padded.copy(),
              in_place = sum.copy(), cut({3, 4, cols}, dtype);
      cpu->pad_columns({.x = y, .y = padded});
      cpu->pad_columns({y, sum, summed});
      cpu->pad_columns({y, in_place, in_place});
      cpu->cut_columns({padded, cut});
      std::vector<double> zeros(static_cast<std::size_t>(padded.count())), sums = sum.values();
      for (std::int64_t n = 0; n < 12; ++n)
        for (std::int64_t j = 0; j < cols; ++j) {
          zeros[static_cast<std::size_t>(n * wide + j)] = y[n * cols + j];
          sums[static_cast<std::size_t>(n * wide + j)] += y[n * cols + j];
        }
      EXPECT_EQ(padded.values(), zeros);
      expect_close(summed, sums);
      EXPECT_TRUE(same_bits(summed, in_place));
      EXPECT_TRUE(same_bits(cut, y));
    }
  });
}

TEST(Padding, OfColumnsMayStandBeforeThemAndBeOnes) {
  for_every_kind([](const Cpu& cpu, DType dtype) {
    for (std::int64_t cols : gate_widths) {
      const std::int64_t wide = cols + 5, first = 3;
      const Operand x = Operand::random({3, 4, cols}, dtype, "x"),
                    sum = Operand::random({3, 4, wide}, dtype, "sum");
      Operand padded = Operand::random({3, 4, wide}, dtype, "stale"), summed = padded.copy(),
              product = padded.copy(), in_place = sum.copy(), product_in_place = sum.copy(),
              cut({3, 4, cols}, dtype);
      cpu->pad_columns({.x = x, .y = padded, .first = first});
      cpu->pad_columns({x, sum, summed, first});
      cpu->pad_columns({x, in_place, in_place, first});
      cpu->cut_columns({padded, cut, first});
      cpu->multiply_columns({sum, x, product});
      cpu->multiply_columns({product_in_place, x, product_in_place});
      std::vector<double> zeros(static_cast<std::size_t>(padded.count())), sums = sum.values(),
                                                                           products = sum.values();
      for (std::int64_t n = 0; n < 12; ++n)
        for (std::int64_t j = 0; j < cols; ++j) {
          zeros[static_cast<std::size_t>(n * wide + first + j)] = x[n * cols + j];
          sums[static_cast<std::size_t>(n * wide + first + j)] += x[n * cols + j];
          products[static_cast<std::size_t>(n * wide + j)] *= x[n * cols + j];
        }
      EXPECT_EQ(padded.values(), zeros);
      expect_close(summed, sums);
      expect_close(product, products);
      EXPECT_TRUE(same_bits(summed, in_place));
      EXPECT_TRUE(same_bits(product, product_in_place));
      EXPECT_TRUE(same_bits(cut, x));
    }
  });
}

TEST(Gate, ThreadsDoNotChangeABit) {
  expect_same_bits_on_threads([](const Cpu& cpu, DType dtype) {
    const std::int64_t rows = 150, cols = 301;
    const Operand both = Operand::random({2, rows, 2 * cols}, dtype, "both"),
                  dy = Operand::random({2, rows, cols}, dtype, "dy"), lengths = Operand::tokens({3, 99});
    std::vector<Operand> out;
    for (int i = 0; i < 4; ++i) out.emplace_back(i == 3 ? both.tensor().shape : dy.tensor().shape, dtype);
    cpu->gate({both, out[0]});
    cpu->activation({dy, Activation::silu, out[1]});
    cpu->clear_padding({dy, lengths, out[2]});
    cpu->gate_backward({dy, both, out[3]});
    for (Operand& padded : std::vector<Operand>{Operand(both.tensor().shape, dtype)}) {
      cpu->pad_columns({dy, both, padded});
      out.push_back(padded);
    }
    out.emplace_back(dy.tensor().shape, dtype);
    cpu->cut_columns({out[3], out.back()});
    return out;
  });
}

TEST(Gate, RowsAndColumnsAloneHaveTheBitsOfTheWhole) {
  for_every_kind([](const Cpu& cpu, DType dtype) {
    const std::int64_t cols = 77, first = 21, some = 30;
    const Operand both = Operand::random({4, 2 * cols}, dtype, "both"),
                  dy = Operand::random({4, cols}, dtype, "dy");
    Operand y({4, cols}, dtype), d({4, 2 * cols}, dtype), part({1, 2 * some}, dtype),
        part_dy({1, some}, dtype), part_y({1, some}, dtype), part_d({1, 2 * some}, dtype);
    cpu->gate({both, y});
    cpu->gate_backward({dy, both, d});
    for (std::int64_t j = 0; j < some; ++j) {
      part.set(j, both[2 * 2 * cols + first + j]);
      part.set(some + j, both[5 * cols + first + j]);
      part_dy.set(j, dy[2 * cols + first + j]);
    }
    cpu->gate({part, part_y});
    cpu->gate_backward({part_dy, part, part_d});
    for (std::int64_t j = 0; j < some; ++j) {
      EXPECT_EQ(part_y[j], y[2 * cols + first + j]);
      EXPECT_EQ(part_d[j], d[2 * 2 * cols + first + j]);
      EXPECT_EQ(part_d[some + j], d[5 * cols + first + j]);
    }
  });
}
