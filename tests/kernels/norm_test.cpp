#include "kernels/operand.h"
#include "kernels/reference.h"

using namespace mindpipe;
using namespace mindpipe::testing;

namespace {

constexpr double epsilon = 1e-5;
constexpr NormKind kinds[] = {NormKind::layer, NormKind::rms};

/// Rows whose mean is not zero, so that a one-pass variance would show.
Operand rows_off_center(const Shape& shape, DType dtype) {
  Operand x = Operand::random(shape, dtype, "x", 2);
  for (std::int64_t i = 0; i < x.count(); ++i) x.set(i, x[i] + 3);
  return x;
}

}  // namespace

TEST(Norm, ForwardMatchesTheReference) {
  for_every_kind([](const Cpu& cpu, DType dtype) {
    for (NormKind kind : kinds)
      for (std::int64_t cols : {1, 5, 16, 31, 770}) {
        const Operand x = rows_off_center({3, cols}, dtype), gain = Operand::random({cols}, dtype, "gain"),
                      offset = Operand::random({cols}, dtype, "offset");
        Operand y({3, cols}, dtype), statistics({3, 2}, wide_of(dtype));
        const bool with_offset = kind == NormKind::layer;
        cpu->norm({kind, x, gain, with_offset ? offset.tensor() : Tensor{}, epsilon, statistics, y});
        const auto want = reference::norm(kind, x.values(), gain.values(),
                                          with_offset ? offset.values() : std::vector<double>{}, epsilon);
        expect_close(statistics, want.statistics, 4);
        expect_close(y, want.y, dtype == DType::bf16 ? 1 : cols == 1 ? 400 : 4);
      }
  });
}

TEST(Norm, OfASumInOnePassHasTheBitsOfOneAfterTheOther) {
  for_every_kind([](const Cpu& cpu, DType dtype) {
    const Dropout dropout{.probability = 0.3f, .stream = {.seed = 7, .purpose = 3, .step = 2, .sample = 5}};
    const SequencePart sequence{.samples = 2, .rows = 11, .first = 3, .whole = 20};
    for (NormKind kind : kinds)
      for (std::int64_t cols : {5, 64, 301}) {
        const Operand x = rows_off_center({2, 11, cols}, dtype),
                      branch = Operand::random({2, 11, cols}, dtype, "branch"),
                      bias = Operand::random({cols}, dtype, "bias"),
                      gain = Operand::random({cols}, dtype, "gain"),
                      offset = Operand::random({cols}, dtype, "offset");
        Operand sum({2, 11, cols}, dtype), statistics({22, 2}, wide_of(dtype)), y({2, 11, cols}, dtype);
        Operand sum_at_once({2, 11, cols}, dtype), statistics_at_once({22, 2}, wide_of(dtype)),
            y_at_once({2, 11, cols}, dtype);
        cpu->residual(
            {.x = x, .branch = branch, .bias = bias, .dropout = dropout, .sequence = sequence, .y = sum});
        cpu->norm({kind, sum, gain, offset, epsilon, statistics, y});
        cpu->residual_norm({x, branch, bias, dropout, sequence, sum_at_once, kind, gain, offset, epsilon,
                            statistics_at_once, y_at_once});
        EXPECT_TRUE(same_bits(sum, sum_at_once));
        EXPECT_TRUE(same_bits(statistics, statistics_at_once));
        EXPECT_TRUE(same_bits(y, y_at_once));
      }
  });
}

TEST(Norm, BackwardMatchesTheReference) {
  for_every_kind([](const Cpu& cpu, DType dtype) {
    for (NormKind kind : kinds)
      for (std::int64_t cols : {3, 16, 31, 770}) {
        const Operand x = rows_off_center({2, 3, cols}, dtype), gain = Operand::random({cols}, dtype, "gain"),
                      dy = Operand::random({2, 3, cols}, dtype, "dy"),
                      residual = Operand::random({2, 3, cols}, dtype, "residual");
        Operand y({2, 3, cols}, dtype), statistics({6, 2}, wide_of(dtype)), dx({2, 3, cols}, dtype),
            with_residual = residual.copy();
        Operand dgain = Operand::random({1, cols}, wide_of(dtype), "dgain"),
                doffset({1, cols}, wide_of(dtype));
        auto want = reference::norm_backward(kind, dy.values(), x.values(), gain.values(), epsilon);
        for (std::int64_t j = 0; j < cols; ++j) want.dgain[reference::at(j)] += dgain[j];
        cpu->norm({.kind = kind, .x = x, .gain = gain, .epsilon = epsilon, .statistics = statistics, .y = y});
        cpu->norm_backward_input(
            {.kind = kind, .dy = dy, .x = x, .gain = gain, .statistics = statistics, .dx = dx});
        expect_close(dx, want.dx, 8);
        cpu->norm_backward_input({kind, dy, x, gain, statistics, with_residual, with_residual});
        for (std::int64_t i = 0; i < dx.count(); ++i) want.dx[reference::at(i)] += residual[i];
        expect_close(with_residual, want.dx, 8);
        cpu->norm_backward_parameters(
            {.kind = kind, .dy = dy, .x = x, .statistics = statistics, .dgain = dgain, .doffset = doffset});
        expect_close(dgain, want.dgain, 8);
        expect_close(doffset, want.doffset, 4);
        Operand dgain_at_once = Operand::random({1, cols}, wide_of(dtype), "dgain"),
                doffset_at_once({1, cols}, wide_of(dtype)), at_once = residual.copy(),
                dbias({1, cols}, wide_of(dtype)), dbias_at_once({1, cols}, wide_of(dtype));
        cpu->bias_backward({residual, dbias});
        cpu->norm_backward(
            {kind, dy, x, gain, statistics, at_once, at_once, dgain_at_once, doffset_at_once, dbias_at_once});
        EXPECT_TRUE(same_bits(at_once, with_residual));
        EXPECT_TRUE(same_bits(dbias_at_once, dbias)) << "of the residual, though dx is in its place";
        EXPECT_TRUE(same_bits(dgain_at_once, dgain));
        EXPECT_TRUE(same_bits(doffset_at_once, doffset));
      }
  });
}

TEST(Norm, GradientOfTheInputIsTheSlopeOfTheForward) {
  const Cpu cpu;
  const std::int64_t cols = 7;
  for (NormKind kind : kinds) {
    Operand x = rows_off_center({1, cols}, DType::f64);
    const Operand gain = Operand::random({cols}, DType::f64, "gain"),
                  dy = Operand::random({1, cols}, DType::f64, "dy");
    Operand y({1, cols}, DType::f64), statistics({1, 2}, DType::f64), dx({1, cols}, DType::f64);
    const auto objective = [&] {
      cpu->norm({.kind = kind, .x = x, .gain = gain, .epsilon = epsilon, .statistics = statistics, .y = y});
      double sum = 0;
      for (std::int64_t j = 0; j < cols; ++j) sum += dy[j] * y[j];
      return sum;
    };
    objective();
    cpu->norm_backward_input(
        {.kind = kind, .dy = dy, .x = x, .gain = gain, .statistics = statistics, .dx = dx});
    for (std::int64_t j = 0; j < cols; ++j) {
      const double middle = x[j], h = 1e-5;
      x.set(j, middle + h);
      const double above = objective();
      x.set(j, middle - h);
      EXPECT_NEAR(dx[j], (above - objective()) / (2 * h), 1e-8);
      x.set(j, middle);
    }
  }
}

TEST(Norm, ARowAloneHasTheBitsItHasAmongOthers) {
  for_every_kind([](const Cpu& cpu, DType dtype) {
    const std::int64_t cols = 197;
    const Operand x = rows_off_center({5, cols}, dtype), gain = Operand::random({cols}, dtype, "gain"),
                  offset = Operand::random({cols}, dtype, "offset"),
                  dy = Operand::random({5, cols}, dtype, "dy");
    Operand y({5, cols}, dtype), statistics({5, 2}, wide_of(dtype)), dx({5, cols}, dtype);
    cpu->norm({NormKind::layer, x, gain, offset, epsilon, statistics, y});
    cpu->norm_backward_input(
        {.kind = NormKind::layer, .dy = dy, .x = x, .gain = gain, .statistics = statistics, .dx = dx});
    const Shape one{1, cols}, pair{1, 2};
    for (std::int64_t n : {0, 3}) {
      Operand row(one, dtype, 5), of_row(one, dtype, 7), row_statistics(pair, wide_of(dtype), 1),
          row_dx(one, dtype, 3);
      std::memcpy(row.tensor().data, x.tensor().row_range(n, 1).data, row.tensor().bytes());
      cpu->norm({NormKind::layer, row, gain, offset, epsilon, row_statistics, of_row});
      cpu->norm_backward_input({.kind = NormKind::layer,
                                .dy = dy.tensor().row_range(n, 1),
                                .x = row,
                                .gain = gain,
                                .statistics = row_statistics,
                                .dx = row_dx});
      EXPECT_TRUE(same_bits(of_row, y.tensor().row_range(n, 1)));
      EXPECT_TRUE(same_bits(row_statistics, statistics.tensor().row_range(n, 1)));
      EXPECT_TRUE(same_bits(row_dx, dx.tensor().row_range(n, 1)));
    }
  });
}

TEST(ColumnSums, BiasGradientIsAFoldInRowOrderPartByPart) {
  for (Isa isa : instruction_sets())
    for (std::int64_t cols : {1, 37, 64, 150}) {
      const std::int64_t samples = 2, rows = 74, parts = 4;
      const Operand dy = Operand::random({samples, rows, cols}, DType::f32, "dy");
      Operand db = Operand::random({parts, cols}, DType::f32, "db");
      Operand want = db.copy();
      for (std::int64_t p = 0; p < parts; ++p)
        for (std::int64_t s = 0; s < samples; ++s)
          for (std::int64_t r = p * rows / parts; r < (p + 1) * rows / parts; ++r)
            for (std::int64_t j = 0; j < cols; ++j)
              want.tensor().as<float>()[p * cols + j] += dy.tensor().as<float>()[(s * rows + r) * cols + j];
      Cpu(1, name_of(isa))->bias_backward({dy, db});
      EXPECT_TRUE(same_bits(db, want)) << name_of(isa) << " " << cols;
    }
}

TEST(ColumnSums, APartOfTheSequenceAloneGivesTheBitsOfItsPart) {
  for_every_kind([](const Cpu& cpu, DType dtype) {
    const std::int64_t rows = 40, cols = 83, parts = 4, in_part = rows / parts;
    const Operand dy = Operand::random({1, rows, cols}, dtype, "dy"),
                  x = Operand::random({1, rows, cols}, dtype, "x"),
                  statistics = Operand::random({rows, 2}, wide_of(dtype), "statistics");
    const DType sum = wide_of(dtype);
    Operand db({parts, cols}, sum), dgain({parts, cols}, sum), doffset({parts, cols}, sum);
    cpu->bias_backward({dy, db});
    cpu->norm_backward_parameters({NormKind::layer, dy, x, statistics, dgain, doffset});
    for (std::int64_t p = 0; p < parts; ++p) {
      Operand db_alone({1, cols}, sum), dgain_alone({1, cols}, sum), doffset_alone({1, cols}, sum);
      const Tensor dy_part = dy.tensor().row_range(p * in_part, in_part),
                   x_part = x.tensor().row_range(p * in_part, in_part);
      cpu->bias_backward({dy_part, db_alone});
      cpu->norm_backward_parameters({NormKind::layer, dy_part, x_part,
                                     statistics.tensor().row_range(p * in_part, in_part), dgain_alone,
                                     doffset_alone});
      EXPECT_TRUE(same_bits(db_alone, db.tensor().row_range(p, 1)));
      EXPECT_TRUE(same_bits(dgain_alone, dgain.tensor().row_range(p, 1)));
      EXPECT_TRUE(same_bits(doffset_alone, doffset.tensor().row_range(p, 1)));
    }
  });
}

TEST(Norm, ThreadsDoNotChangeABit) {
  expect_same_bits_on_threads([](const Cpu& cpu, DType dtype) {
    const Shape shape{3, 17, 1031};
    const Operand x = rows_off_center(shape, dtype), dy = Operand::random(shape, dtype, "dy"),
                  gain = Operand::random({1031}, dtype, "gain");
    std::vector<Operand> out{Operand(shape, dtype), Operand(shape, dtype)};
    for (std::int64_t rows : {51, 4, 4, 4})
      out.emplace_back(Shape{rows, rows == 51 ? std::int64_t{2} : std::int64_t{1031}}, wide_of(dtype));
    cpu->norm({NormKind::layer, x, gain, gain, epsilon, out[2], out[0]});
    cpu->norm_backward_input(
        {.kind = NormKind::layer, .dy = dy, .x = x, .gain = gain, .statistics = out[2], .dx = out[1]});
    cpu->norm_backward_parameters({NormKind::layer, dy, x, out[2], out[3], out[4]});
    cpu->bias_backward({dy, out[5]});
    return out;
  });
}

TEST(Rotary, TurnsPairsByTheirPositionAndBack) {
  for_every_kind([](const Cpu& cpu, DType dtype) {
    const std::int64_t samples = 2, rows = 5, heads = 4, width = 6, first = 2, count = 2, position = 3;
    const Operand before = Operand::random({samples, rows, heads, width}, dtype, "heads");
    Operand turned = before.copy();
    std::vector<double> want = before.values();
    for (std::int64_t n = 0; n < samples * rows; ++n)
      for (std::int64_t h = first; h < first + count; ++h)
        for (std::int64_t i = 0; i < width / 2; ++i) {
          const std::size_t low = reference::at((n * heads + h) * width + i),
                            high = low + reference::at(width / 2);
          const double angle = static_cast<double>(position + n % rows) *
                               std::pow(10000, -2.0 * static_cast<double>(i) / static_cast<double>(width));
          const double a = want[low], b = want[high];
          want[low] = a * std::cos(angle) - b * std::sin(angle);
          want[high] = b * std::cos(angle) + a * std::sin(angle);
        }
    cpu->rotary({.heads = {turned, first, count},
                 .frequencies = rotary_frequencies(10000, width),
                 .first_position = position,
                 .inverse = false});
    expect_close(turned, want);
    cpu->rotary({.heads = {turned, first, count},
                 .frequencies = rotary_frequencies(10000, width),
                 .first_position = position,
                 .inverse = true});
    expect_close(turned, before.values(), 2);
  });
}

TEST(Rotary, ATableMadeForAnotherQuestionIsNotUsed) {
  const Operand before = Operand::random({1, 4, 1, 8}, DType::f32, "heads");
  const Cpu seasoned;
  for (double base : {10000.0, 500.0})
    for (std::int64_t position : {0, 1, 7, 2}) {
      Operand here = before.copy(), fresh = before.copy();
      seasoned->rotary({{here, 0, 1}, rotary_frequencies(base, 8), position, false});
      Cpu()->rotary({{fresh, 0, 1}, rotary_frequencies(base, 8), position, false});
      EXPECT_TRUE(same_bits(here, fresh)) << base << " " << position;
    }
}
