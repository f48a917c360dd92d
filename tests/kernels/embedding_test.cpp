#include "kernels/operand.h"

using namespace mindpipe;
using namespace mindpipe::testing;

namespace {

/// Repeats, the first and last row of the table, and ids on both sides outside it.
std::vector<std::int32_t> some_tokens(std::int64_t count) {
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < count; ++i) ids.push_back(static_cast<std::int32_t>(i * i * 7 % 23));
  return ids;
}
constexpr std::int64_t first_row = 5, table_rows = 11;

}  // namespace

TEST(Embedding, CopiesRowsAndGivesZerosOutsideTheTable) {
  for_every_kind([](const Cpu& cpu, DType dtype) {
    const std::int64_t cols = 37;
    const auto ids = some_tokens(29);
    const Operand table = Operand::random({table_rows, cols}, dtype, "table"), tokens = Operand::tokens(ids);
    Operand y = Operand::random({29, cols}, dtype, "stale");
    cpu->embedding({tokens, table, first_row, y});
    int outside = 0;
    for (std::int64_t n = 0; n < 29; ++n) {
      const std::int64_t row = ids[static_cast<std::size_t>(n)] - first_row;
      const bool inside = row >= 0 && row < table_rows;
      outside += !inside;
      for (std::int64_t j = 0; j < cols; ++j)
        ASSERT_EQ(y[n * cols + j], inside ? table[row * cols + j] : 0.0);
    }
    EXPECT_GT(outside, 0);
  });
}

TEST(Embedding, TwoShardsOfTheTableAddUpToTheWhole) {
  const Cpu cpu;
  const Operand table = Operand::random({24, 9}, DType::f32, "table"),
                tokens = Operand::tokens(some_tokens(40));
  Operand whole({40, 9}, DType::f32), low({40, 9}, DType::f32), high({40, 9}, DType::f32),
      sum({40, 9}, DType::f32);
  cpu->embedding({tokens, table, 0, whole});
  cpu->embedding({tokens, table.tensor().row_range(0, 12), 0, low});
  cpu->embedding({tokens, table.tensor().row_range(12, 12), 12, high});
  cpu->add({low, high, sum});
  EXPECT_TRUE(same_bits(whole, sum));
}

TEST(Embedding, GradientRowsAreAddedInTokenOrder) {
  for (Isa isa : instruction_sets())
    for (DType dtype : {DType::f32, DType::bf16}) {
      const std::int64_t cols = 133;
      const auto ids = some_tokens(301);
      const Operand tokens = Operand::tokens(ids), dy = Operand::random({301, cols}, dtype, "dy");
      Operand dtable = Operand::random({table_rows, cols}, DType::f32, "dtable");
      Operand want = dtable.copy();
      for (std::int64_t n = 0; n < 301; ++n) {
        const std::int64_t row = ids[static_cast<std::size_t>(n)] - first_row;
        if (row < 0 || row >= table_rows) continue;
        for (std::int64_t j = 0; j < cols; ++j)
          want.tensor().as<float>()[row * cols + j] += static_cast<float>(dy[n * cols + j]);
      }
      Cpu(1, name_of(isa))->embedding_backward({tokens, dy, first_row, dtable});
      EXPECT_TRUE(same_bits(dtable, want)) << name_of(isa) << " " << name_of(dtype);
    }
}

TEST(Embedding, ADroppedTokenAddsNothingToTheTable) {
  for_every_kind([](const Cpu& cpu, DType dtype) {
    const std::int64_t cols = 70;
    const auto ids = some_tokens(60);
    const Operand tokens = Operand::tokens(ids), dy = Operand::random({60, cols}, dtype, "dy");
    const std::int32_t dropped = ids[1];
    Operand all({table_rows, cols}, wide_of(dtype)), without({table_rows, cols}, wide_of(dtype));
    cpu->embedding_backward({tokens, dy, first_row, all});
    cpu->embedding_backward({tokens, dy, first_row, without, dropped});
    ASSERT_TRUE(dropped >= first_row && dropped < first_row + table_rows);
    for (std::int64_t i = 0; i < all.count(); ++i) {
      const bool gone = i / cols == dropped - first_row;
      ASSERT_EQ(without[i], gone ? 0 : all[i]);
      ASSERT_TRUE(!gone || all[i] != 0);
    }
  });
}

TEST(Sinusoids, AreSinesThenCosinesOfBothFormsFromAFirstPositionOn) {
  for_every_kind([](const Cpu& cpu, DType dtype) {
    const std::int64_t samples = 2, rows = 3;
    const SequencePart sequence{.samples = samples, .rows = rows, .first = 40, .whole = 80};
    for (std::int64_t cols : {4, 6, 64, 300})
      for (Sinusoids form : {Sinusoids::below_base, Sinusoids::up_to_base}) {
        const Operand x = Operand::random({samples, rows, cols}, dtype, "x");
        Operand y({samples, rows, cols}, dtype);
        std::vector<double> want = x.values();
        for (std::int64_t i = 0; i < x.count(); ++i) {
          const std::int64_t half = cols / 2, column = i % cols, pair = column % half;
          const double frequency =
              form == Sinusoids::below_base
                  ? std::pow(10000.0, -2.0 * static_cast<double>(pair) / static_cast<double>(cols))
                  : std::exp(-static_cast<double>(pair) * std::log(1e4) / (static_cast<double>(half) - 1));
          const double angle = static_cast<double>(2 + 40 + i / cols % rows) * frequency;
          want[static_cast<std::size_t>(i)] += column < half ? std::sin(angle) : std::cos(angle);
        }
        cpu->add_sinusoids({x, sequence, 2, form, y});
        expect_close(y, want);
        Operand in_place = x.copy(1);
        cpu->add_sinusoids({in_place, sequence, 2, form, in_place});
        EXPECT_TRUE(same_bits(y, in_place));
        const Operand one({samples, 1, cols}, dtype);  // a row alone has the bits that it has among others
        const Tensor row = x.tensor().at(1).row_range(2, 1);
        cpu->add_sinusoids({row,
                            {.samples = 1, .rows = 1, .first = 42, .whole = 80},
                            2,
                            form,
                            one.tensor().row_range(0, 1)});
        EXPECT_TRUE(same_bits(one.tensor().row_range(0, 1), y.tensor().at(1).row_range(2, 1)));
      }
    const Operand odd({1, 1, 5}, dtype), two({1, 1, 2}, dtype);
    const SequencePart alone{.samples = 1, .rows = 1, .first = 0, .whole = 1};
    EXPECT_THROW(cpu->add_sinusoids({odd, alone, 0, Sinusoids::below_base, odd}), Error);
    EXPECT_THROW(cpu->add_sinusoids({two, alone, 0, Sinusoids::up_to_base, two}), Error);
  });
}

TEST(Positions, AreThoseOfTheWholeSequence) {
  for_every_kind([](const Cpu& cpu, DType dtype) {
    const std::int64_t cols = 21, samples = 2, rows = 3;
    const SequencePart sequence{.samples = samples, .rows = rows, .first = 4, .whole = 8};
    const Operand x = Operand::random({samples, rows, cols}, dtype, "x"),
                  positions = Operand::random({12, cols}, dtype, "positions");
    Operand y({samples, rows, cols}, dtype),
        dpositions = Operand::random({12, cols}, wide_of(dtype), "dpositions");
    std::vector<double> want = x.values(), dwant = dpositions.values();
    for (std::int64_t i = 0; i < x.count(); ++i) {
      const std::int64_t row = 2 + 4 + i / cols % rows;
      want[static_cast<std::size_t>(i)] += positions[row * cols + i % cols];
      dwant[static_cast<std::size_t>(row * cols + i % cols)] += x[i];
    }
    cpu->add_positions({x, positions, sequence, 2, y});
    expect_close(y, want);
    Operand in_place = x.copy();
    cpu->add_positions(
        {.x = in_place, .positions = positions, .sequence = sequence, .first_position = 2, .y = in_place});
    EXPECT_TRUE(same_bits(y, in_place));
    cpu->positions_backward({x, sequence, 2, dpositions});
    expect_close(dpositions, dwant);
  });
}

TEST(Positions, OutsideTheTableAreRefused) {
  const Cpu cpu;
  const Operand x({1, 3, 4}, DType::f32), positions({6, 4}, DType::f32);
  EXPECT_THROW(cpu->add_positions({x, positions, {.samples = 1, .rows = 3, .first = 4, .whole = 8}, 0, x}),
               Error);
}

TEST(Embedding, ThreadsDoNotChangeABit) {
  expect_same_bits_on_threads([](const Cpu& cpu, DType dtype) {
    const std::int64_t cols = 517, rows = 120;
    const SequencePart sequence{.samples = 2, .rows = rows, .first = 0, .whole = rows};
    const Operand tokens = Operand::tokens(some_tokens(2 * rows)),
                  table = Operand::random({table_rows, cols}, dtype, "table"),
                  positions = Operand::random({rows, cols}, dtype, "positions"),
                  dy = Operand::random({2, rows, cols}, dtype, "dy");
    std::vector<Operand> out{Operand({2, rows, cols}, dtype), Operand({2, rows, cols}, dtype),
                             Operand({table_rows, cols}, wide_of(dtype)),
                             Operand({rows, cols}, wide_of(dtype)), Operand({2, rows, cols - 1}, dtype)};
    cpu->embedding({tokens, table, first_row, out[0]});
    cpu->add_positions({dy, positions, sequence, 0, out[1]});
    cpu->embedding_backward({tokens, dy, first_row, out[2]});
    cpu->positions_backward({dy, sequence, 0, out[3]});
    const Tensor even{dy.tensor().data, out[4].tensor().shape, dtype};
    cpu->add_sinusoids({even, sequence, 0, Sinusoids::below_base, out[4]});
    return out;
  });
}
