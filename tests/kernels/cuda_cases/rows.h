#pragma once
#include "kernels/cuda_cases/shared.h"

/// Norms, sums over rows, rotations.

namespace mindpipe::testing {
/// Columns of rows that a warp holds, a block holds, that are no whole groups, and that are too long for a
/// block's registers.
inline constexpr std::int64_t row_lengths[] = {1, 5, 64, 770, 1032, 4104, 16400};
}  // namespace mindpipe::testing

TEST_F(Cuda, NormOfRowsOfAnyLength) {
  for_kinds(*this, [&](DType dtype, std::size_t skew) {
    std::vector<Operand> all;
    const Maker make{pairing(), dtype, skew};
    for (NormKind kind : {NormKind::layer, NormKind::rms})
      for (std::int64_t cols : row_lengths) {
        const std::int64_t rows = cols < 100 ? 7 : 3;
        const Mirror x = make.random({rows, cols}, "x", 2), gain = make.random({cols}, "gain"),
                     offset = make.random({cols}, "offset"), dy = make.random({rows, cols}, "dy");
        const Mirror statistics = make.empty_wide({rows, 2}), y = make.empty({rows, cols}),
                     dx = make.empty({rows, cols}), in_place = make.random({rows, cols}, "residual");
        const bool with_offset = kind == NormKind::layer;
        on_both(pairing(), {&statistics, &y, &dx, &in_place}, cols == 1 ? 1000 : 8,
                [&](Backend& backend, auto of) {
                  backend.norm({kind, of(x), of(gain), with_offset ? of(offset) : Tensor{}, 1e-5,
                                of(statistics), of(y)});
                  backend.norm_backward_input({.kind = kind,
                                               .dy = of(dy),
                                               .x = of(x),
                                               .gain = of(gain),
                                               .statistics = of(statistics),
                                               .dx = of(dx)});
                  backend.norm_backward_input(
                      {kind, of(dy), of(x), of(gain), of(statistics), of(in_place), of(in_place)});
                });
        for (Operand& o : fetched({&statistics, &y, &dx, &in_place})) all.push_back(std::move(o));
      }
    return all;
  });
}

TEST_F(Cuda, BothGradientsOfANormInOnePass) {
  for_kinds(*this, [&](DType dtype, std::size_t skew) {
    std::vector<Operand> all;
    const Maker make{pairing(), dtype, skew};
    struct Case {
      std::int64_t samples, rows, cols, parts;
    };
    // Teams of a warp, of several and of a whole block, in one round and in several, whose last rows are
    // fewer; more chunks than runs of them; chunks of more rows than the least; rows that no block holds.
    for (const Case& c :
         {Case{1, 1, 5, 1}, Case{2, 20, 136, 2}, Case{3, 11, 33, 4}, Case{1, 70, 8, 1}, Case{1, 5, 770, 1},
          Case{1, 4, 4096, 1}, Case{1, 300, 16, 1}, Case{1, 8230, 4, 1}, Case{1, 1, 8200, 1}}) {
      const NormKind kind = c.rows % 2 == 0 ? NormKind::layer : NormKind::rms;
      const Shape shape{c.samples, c.rows, c.cols}, sums{c.parts, c.cols};
      const Mirror dy = make.random(shape, "dy"), x = make.random(shape, "x"),
                   gain = make.random({c.cols}, "gain"), past = make.random(shape, "residual"),
                   statistics = make.wide({c.samples * c.rows, 2}, "statistics");
      const Mirror dx = make.empty(shape), in_place = make.random(shape, "residual"),
                   dgain = make.wide(sums, "dgain"), doffset = make.wide(sums, "doffset"),
                   again = make.wide(sums, "dgain"), dbias = make.wide(sums, "dbias");
      const bool with_offset = kind == NormKind::layer;
      on_both(pairing(), {&dx, &in_place, &dgain, &doffset, &again, &dbias},
              8.0 * static_cast<double>(c.rows + 8), [&](Backend& backend, auto of) {
                backend.norm_backward({kind, of(dy), of(x), of(gain), of(statistics), of(past), of(dx),
                                       of(dgain), with_offset ? of(doffset) : Tensor{}});
                backend.norm_backward({kind,
                                       of(dy),
                                       of(x),
                                       of(gain),
                                       of(statistics),
                                       of(in_place),
                                       of(in_place),
                                       of(again),
                                       {},
                                       of(dbias)});
              });
      EXPECT_TRUE(same_bits(dx.fetched(), in_place.fetched()));
      EXPECT_TRUE(same_bits(dgain.fetched(), again.fetched()));
      const Mirror all_three = make.wide(sums, "dbias");
      pairing().gpu->norm_backward({kind, dy.device(), x.device(), gain.device(), statistics.device(),
                                    past.device(), dx.device(), again.device(), doffset.device(),
                                    all_three.device()});
      EXPECT_TRUE(same_bits(all_three.fetched(), dbias.fetched())) << "whatever is added up beside it";
      for (Operand& o : fetched({&dx, &dgain, &doffset, &dbias})) all.push_back(std::move(o));
    }
    return all;
  });
}

TEST_F(Cuda, ResidualNormIsTheSumAndItsNorm) {
  for_kinds(*this, [&](DType dtype, std::size_t skew) {
    std::vector<Operand> all;
    const Maker make{pairing(), dtype, skew};
    const SequencePart sequence{.samples = 2, .rows = 2, .first = 3, .whole = 9};
    for (std::int64_t cols : row_lengths) {
      const Shape shape{2, 2, cols};
      const Mirror x = make.random(shape, "x", 2), branch = make.random(shape, "branch"),
                   bias = make.random({cols}, "bias"), gain = make.random({cols}, "gain");
      const Mirror sum = make.empty(shape), statistics = make.empty_wide({4, 2}), y = make.empty(shape);
      on_both(pairing(), {&sum, &statistics, &y}, cols == 1 ? 4000 : 16, [&](Backend& backend, auto of) {
        backend.residual_norm({.x = of(x),
                               .branch = of(branch),
                               .bias = of(bias),
                               .dropout = drop,
                               .sequence = sequence,
                               .y = of(sum),
                               .kind = NormKind::layer,
                               .gain = of(gain),
                               .epsilon = 1e-5,
                               .statistics = of(statistics),
                               .normed = of(y)});
      });
      // The very bits of one after the other.
      const Mirror sum_alone = make.empty(shape), statistics_alone = make.empty_wide({4, 2}),
                   y_alone = make.empty(shape);
      pairing().gpu->residual(
          {x.device(), branch.device(), bias.device(), drop, sequence, sum_alone.device()});
      pairing().gpu->norm({.kind = NormKind::layer,
                           .x = sum_alone.device(),
                           .gain = gain.device(),
                           .epsilon = 1e-5,
                           .statistics = statistics_alone.device(),
                           .y = y_alone.device()});
      EXPECT_TRUE(same_bits(sum.fetched(), sum_alone.fetched()));
      EXPECT_TRUE(same_bits(statistics.fetched(), statistics_alone.fetched()));
      EXPECT_TRUE(same_bits(y.fetched(), y_alone.fetched()));
      for (Operand& o : fetched({&sum, &statistics, &y})) all.push_back(std::move(o));
    }
    return all;
  });
}

TEST_F(Cuda, ARowHasTheSameBitsBesideOthersAndAlone) {
  for (DType dtype : {DType::f32, DType::bf16})
    for (std::int64_t cols : {64, 776, 1032}) {
      const Maker make{pairing(), dtype, 0};
      const Mirror x = make.random({6, cols}, "x"), gain = make.random({cols}, "gain"),
                   dy = make.random({6, cols}, "dy");
      const Mirror statistics = make.empty_wide({6, 2}), y = make.empty({6, cols}),
                   dx = make.empty({6, cols});
      Backend& gpu = *pairing().gpu;
      gpu.norm(
          {NormKind::layer, x.device(), gain.device(), gain.device(), 1e-5, statistics.device(), y.device()});
      gpu.norm_backward_input({.kind = NormKind::layer,
                               .dy = dy.device(),
                               .x = x.device(),
                               .gain = gain.device(),
                               .statistics = statistics.device(),
                               .dx = dx.device()});
      for (std::int64_t n : {0, 3, 5}) {
        const Mirror statistics_alone = make.empty_wide({1, 2}), y_alone = make.empty({1, cols}),
                     dx_alone = make.empty({1, cols});
        gpu.norm({NormKind::layer, x.device().row_range(n, 1), gain.device(), gain.device(), 1e-5,
                  statistics_alone.device(), y_alone.device()});
        gpu.norm_backward_input({.kind = NormKind::layer,
                                 .dy = dy.device().row_range(n, 1),
                                 .x = x.device().row_range(n, 1),
                                 .gain = gain.device(),
                                 .statistics = statistics_alone.device(),
                                 .dx = dx_alone.device()});
        EXPECT_TRUE(same_bits(y_alone.fetched(), y.fetched().tensor().row_range(n, 1)));
        EXPECT_TRUE(same_bits(dx_alone.fetched(), dx.fetched().tensor().row_range(n, 1)));
      }
    }
}

TEST_F(Cuda, SumsOverRowsPartByPart) {
  for_kinds(*this, [&](DType dtype, std::size_t skew) {
    std::vector<Operand> all;
    const Maker make{pairing(), dtype, skew};
    struct Case {
      std::int64_t samples, rows, cols, parts;
    };
    for (const Case& c : {Case{1, 1, 5, 1}, Case{2, 74, 136, 2}, Case{3, 40, 33, 4}, Case{1, 700, 8, 1},
                          Case{1, 9000, 12, 1}}) {
      const Shape shape{c.samples, c.rows, c.cols}, sums{c.parts, c.cols};
      const Mirror dy = make.random(shape, "dy"), x = make.random(shape, "x"),
                   statistics = make.wide({c.samples * c.rows, 2}, "statistics");
      const Mirror db = make.wide(sums, "db"), dgain = make.wide(sums, "dgain"),
                   doffset = make.wide(sums, "doffset"), dgain_only = make.wide(sums, "only");
      on_both(pairing(), {&db, &dgain, &doffset, &dgain_only}, 4.0 * static_cast<double>(c.rows),
              [&](Backend& backend, auto of) {
                backend.bias_backward({of(dy), of(db)});
                backend.norm_backward_parameters(
                    {NormKind::layer, of(dy), of(x), of(statistics), of(dgain), of(doffset)});
                backend.norm_backward_parameters({.kind = NormKind::rms,
                                                  .dy = of(dy),
                                                  .x = of(x),
                                                  .statistics = of(statistics),
                                                  .dgain = of(dgain_only)});
              });
      for (Operand& o : fetched({&db, &dgain, &doffset, &dgain_only})) all.push_back(std::move(o));
    }
    return all;
  });
}

TEST_F(Cuda, APartOfTheSequenceAloneGivesTheBitsOfItsPart) {
  const std::int64_t rows = 400, cols = 72, parts = 4, in_part = rows / parts;
  for (DType dtype : {DType::f32, DType::bf16}) {
    const Maker make{pairing(), dtype, 0};
    const Mirror dy = make.random({1, rows, cols}, "dy"), db(pairing(), Operand({parts, cols}, DType::f32));
    pairing().gpu->bias_backward({dy.device(), db.device()});
    for (std::int64_t p = 0; p < parts; ++p) {
      const Mirror alone(pairing(), Operand({1, cols}, DType::f32));
      pairing().gpu->bias_backward({dy.device().row_range(p * in_part, in_part), alone.device()});
      EXPECT_TRUE(same_bits(alone.fetched(), db.fetched().tensor().row_range(p, 1)));
    }
  }
}

TEST_F(Cuda, APartOfTheSequenceAloneGivesTheBitsOfItsNorm) {
  const std::int64_t rows = 400, cols = 72, parts = 4, in_part = rows / parts;
  for (DType dtype : {DType::f32, DType::bf16}) {
    const Maker make{pairing(), dtype, 0};
    const Mirror dy = make.random({1, rows, cols}, "dy"), x = make.random({1, rows, cols}, "x"),
                 gain = make.random({cols}, "gain"), statistics = make.wide({rows, 2}, "statistics"),
                 dx = make.empty({1, rows, cols});
    const auto gradients = [&](std::int64_t first, std::int64_t count, std::int64_t of_parts) {
      const Mirror dgain(pairing(), Operand({of_parts, cols}, DType::f32)),
          doffset(pairing(), Operand({of_parts, cols}, DType::f32)),
          dbias(pairing(), Operand({of_parts, cols}, DType::f32));
      const auto some = [&](const Mirror& m) { return m.device().row_range(first, count); };
      pairing().gpu->norm_backward({NormKind::layer, some(dy), some(x), gain.device(), some(statistics),
                                    some(x), some(dx), dgain.device(), doffset.device(), dbias.device()});
      return fetched({&dgain, &doffset, &dbias});
    };
    const std::vector<Operand> all = gradients(0, rows, parts);
    for (std::int64_t p = 0; p < parts; ++p) {
      const std::vector<Operand> alone = gradients(p * in_part, in_part, 1);
      for (std::size_t i = 0; i < all.size(); ++i)
        EXPECT_TRUE(same_bits(alone[i], all[i].tensor().row_range(p, 1))) << i;
    }
  }
}

TEST_F(Cuda, RotaryTurnsHeadsAndBack) {
  for_kinds(*this, [&](DType dtype, std::size_t skew) {
    std::vector<Operand> all;
    const Maker make{pairing(), dtype, skew};
    for (std::int64_t width : {2, 6, 64}) {
      const Mirror turned = make.random({2, 5, 4, width}, "heads"),
                   back = make.random({2, 5, 4, width}, "heads");
      on_both(pairing(), {&turned, &back}, 2, [&](Backend& backend, auto of) {
        backend.rotary({{of(turned), 1, 2}, rotary_frequencies(10000, width), 3, false});
        backend.rotary({{of(back), 0, 4}, rotary_frequencies(500, width), 70000, true});
      });
      for (Operand& o : fetched({&turned, &back})) all.push_back(std::move(o));
    }
    return all;
  });
}
