#include "kernels/operand.h"

using namespace mindpipe;
using namespace mindpipe::testing;

namespace {

/// Rows of two samples of eleven: the first and the last, one twice, and what is no row.
const std::vector<std::int32_t> picked_rows{0, 10, 4, -1, 7, /**/ 3, 3, 10, 11, 3};
constexpr std::int64_t pick_samples = 2, pick_rows = 11, picks = 5;

Operand listed() {
  Operand made({pick_samples, picks}, DType::i32);
  std::copy(picked_rows.begin(), picked_rows.end(), made.tensor().as<std::int32_t>());
  return made;
}

}  // namespace

TEST(Picks, AreTheRowsThatTheListNamesAndZeros) {
  for_every_kind([](const Cpu& cpu, DType dtype) {
    for (std::int64_t cols : {1, 37, 600}) {
      const Operand x = Operand::random({pick_samples, pick_rows, cols}, dtype, "x"), rows = listed();
      const Operand y = Operand::random({pick_samples, picks, cols}, dtype, "stale");
      cpu->pick_rows({x, rows, y});
      for (std::int64_t n = 0; n < pick_samples * picks; ++n)
        for (std::int64_t j = 0; j < cols; ++j) {
          const std::int64_t row = picked_rows[static_cast<std::size_t>(n)];
          const bool there = row >= 0 && row < pick_rows;
          ASSERT_EQ(y[n * cols + j], there ? x[(n / picks * pick_rows + row) * cols + j] : 0.0);
        }
    }
  });
}

TEST(Picks, ArePutBackWhereTheyWereWithZerosElsewhere) {
  for_every_kind([](const Cpu& cpu, DType dtype) {
    for (std::int64_t cols : {1, 37, 600}) {
      const Operand dy = Operand::random({pick_samples, picks, cols}, dtype, "dy"), rows = listed();
      const Operand dx = Operand::random({pick_samples, pick_rows, cols}, dtype, "stale");
      cpu->put_rows({dy, rows, 0, dx});
      std::vector<double> want(static_cast<std::size_t>(dx.count()));
      for (std::int64_t n = 0; n < pick_samples * picks; ++n) {
        const std::int64_t row = picked_rows[static_cast<std::size_t>(n)];
        if (row < 0 || row >= pick_rows) continue;
        for (std::int64_t j = 0; j < cols; ++j)
          want[static_cast<std::size_t>((n / picks * pick_rows + row) * cols + j)] += dy[n * cols + j];
      }
      expect_close(dx, want);
      EXPECT_EQ(dx[4 * cols], dy[2 * cols]) << "a row that is picked once keeps its bits";
      EXPECT_EQ(dx[cols], 0);
    }
  });
}

TEST(Picks, OfAPartOfTheSequenceAreTheBitsOfTheWhole) {
  for_every_kind([](const Cpu& cpu, DType dtype) {
    const std::int64_t cols = 300;
    const Operand dy = Operand::random({pick_samples, picks, cols}, dtype, "dy"), rows = listed();
    const Operand whole({pick_samples, pick_rows, cols}, dtype);
    cpu->put_rows({dy, rows, 0, whole});
    for (std::int64_t first : {0, 3, 10})
      for (std::int64_t count : {1, 4}) {
        const Operand part({pick_samples, count, cols}, dtype);
        cpu->put_rows({dy, rows, first, part});
        for (std::int64_t s = 0; s < pick_samples; ++s)
          for (std::int64_t r = 0; r < std::min(count, pick_rows - first); ++r)
            EXPECT_TRUE(
                same_bits(part.tensor().at(s).row_range(r, 1), whole.tensor().at(s).row_range(first + r, 1)));
      }
  });
}

TEST(Picks, ThreadsDoNotChangeABit) {
  expect_same_bits_on_threads([](const Cpu& cpu, DType dtype) {
    const std::int64_t cols = 9001;
    const Operand x = Operand::random({pick_samples, pick_rows, cols}, dtype, "x"), rows = listed();
    std::vector<Operand> out{Operand({pick_samples, picks, cols}, dtype),
                             Operand({pick_samples, pick_rows, cols}, dtype)};
    cpu->pick_rows({x, rows, out[0]});
    cpu->put_rows({out[0], rows, 0, out[1]});
    return out;
  });
}

TEST(Picks, OfAnotherShapeAreRefused) {
  const Cpu cpu;
  const Operand x({2, 3, 4}, DType::f32), rows({2, 2}, DType::i32), floats({2, 2}, DType::f32),
      few({1, 2, 4}, DType::f32), y({2, 2, 4}, DType::f32);
  EXPECT_THROW(cpu->pick_rows({x, rows, few}), Error);
  EXPECT_THROW(cpu->pick_rows({x, floats, y}), Error);
  EXPECT_THROW(cpu->put_rows({few, rows, 0, x}), Error);
  EXPECT_THROW(cpu->pick_rows({few, rows, y}), Error);
}
