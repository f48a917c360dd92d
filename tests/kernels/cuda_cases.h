#pragma once
#include "kernels/mirror.h"

/// Every operation that the GPU does by kernels of our own, against the CPU. The including test says what the GPU is: class Cuda, a fixture
/// with `pairing()`, and for_orders(run), which calls run() for every order in which its threads can be made to run.
namespace mindpipe::testing {

inline const Dropout drop{.probability = 0.3f, .stream = {.seed = 5, .purpose = purpose_of("dropout"), .step = 9, .sample = 40}};

/// make(dtype, skew) runs one operation on fresh operands and returns its outputs as the GPU has them. For every number type: they have the
/// same bits in every order of threads, and at addresses that are not aligned.
template <class Fixture, class Make>
void for_kinds(Fixture& fixture, const Make& make) {
  for (DType dtype : number_types) {
    SCOPED_TRACE(name_of(dtype));
    std::vector<Operand> first;
    const auto check = [&](std::size_t skew) {
      SCOPED_TRACE("skew " + std::to_string(skew));
      const std::vector<Operand> got = make(dtype, skew);
      if (first.empty()) first = got;
      ASSERT_EQ(got.size(), first.size());
      for (std::size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(same_bits(got[i], first[i])) << "output " << i << " has other bits";
    };
    fixture.for_orders([&] { check(0); });
    check(1);
  }
}

inline std::vector<Operand> fetched(const std::vector<const Mirror*>& outputs) {
  std::vector<Operand> all;
  for (const Mirror* output : outputs) all.push_back(output->fetched());
  return all;
}

/// Names of operands make their numbers.
struct Maker {
  Pairing& pairing;
  DType dtype;
  std::size_t skew;
  Mirror random(const Shape& shape, std::string_view name, double deviation = 1) const {
    return Mirror(pairing, Operand::random(shape, dtype, name, deviation, skew), skew);
  }
  Mirror wide(const Shape& shape, std::string_view name) const {
    return Mirror(pairing, Operand::random(shape, wide_of(dtype), name, 1, skew), skew);
  }
  Mirror empty(const Shape& shape) const { return Mirror(pairing, Operand(shape, dtype, skew), skew); }
  Mirror empty_wide(const Shape& shape) const { return Mirror(pairing, Operand(shape, wide_of(dtype), skew), skew); }
};

}  // namespace mindpipe::testing

using namespace mindpipe;
using namespace mindpipe::testing;

TEST_F(Cuda, AddsAndAccumulates) {
  for_kinds(*this, [&](DType dtype, std::size_t skew) {
    std::vector<Operand> all;
    const Maker make{pairing(), dtype, skew};
    for (std::int64_t n : {1, 7, 8, 2049, 5000}) {
      const Mirror a = make.random({n}, "a"), b = make.random({n}, "b"), sum = make.empty({n}), total = make.wide({n}, "total"),
                   in_place = make.random({n}, "c");
      const Mirror one = make.wide({n}, "one"), other = make.wide({n}, "other"), largest = make.empty_wide({n});
      on_both(pairing(), {&sum, &total, &in_place, &largest}, 1, [&](Backend& backend, auto of) {
        backend.maximum(of(one), of(other), of(largest));
        backend.add(of(a), of(b), of(sum));
        backend.accumulate(of(a), of(total));
        backend.add(of(in_place), of(b), of(in_place));
      });
      for (Operand& o : fetched({&sum, &total, &in_place, &largest})) all.push_back(std::move(o));
    }
    return all;
  });
}

TEST_F(Cuda, ConvertsAndFills) {
  for_kinds(*this, [&](DType dtype, std::size_t skew) {
    const Maker make{pairing(), dtype, skew};
    const Mirror x = make.random({4099}, "x");
    const Mirror f64(pairing(), Operand({4099}, DType::f64), skew), f32(pairing(), Operand({4099}, DType::f32), skew),
        bf16(pairing(), Operand({4099}, DType::bf16), skew);
    const Mirror filled = make.empty({1003});
    on_both(pairing(), {&f64, &f32, &bf16, &filled}, 0, [&](Backend& backend, auto of) {
      for (const Mirror* to : {&f64, &f32, &bf16}) backend.convert(of(x), of(*to));
      backend.fill(of(filled), -0.7);
    });
    return fetched({&f64, &f32, &bf16, &filled});
  });
}

TEST_F(Cuda, FillsWholeNumbers) {
  for (DType dtype : {DType::i32, DType::u8}) {
    const Mirror x(pairing(), Operand({1001}, dtype), 1);
    on_both(pairing(), {&x}, 0, [&](Backend& backend, auto of) { backend.fill(of(x), 7); });
  }
}

TEST_F(Cuda, RoundsToBf16ToTheNearestAndTiesToEven) {
  Operand bits({17}, DType::f32);
  const std::uint32_t cases[] = {0x3f800000, 0x3f808000, 0x3f808001, 0x3f818000, 0xbf818000, 0x7f7fffff,
                                 0x7f800000, 0xff800000, 0,          0x80000000, 0x00008000};
  for (int i = 0; i < 17; ++i) bits.tensor().as<std::uint32_t>()[i] = cases[i % std::size(cases)];
  const Mirror x(pairing(), bits), y(pairing(), Operand({17}, DType::bf16));
  on_both(pairing(), {}, 0, [&](Backend& backend, auto of) { backend.convert(of(x), of(y)); });
  EXPECT_TRUE(same_bits(y.fetched(), y.on_host()));
}

TEST_F(Cuda, Swiglu) {
  for_kinds(*this, [&](DType dtype, std::size_t skew) {
    std::vector<Operand> all;
    const Maker make{pairing(), dtype, skew};
    for (std::int64_t cols : {1, 7, 64, 301}) {
      const Mirror gate_up = make.random({9, 2 * cols}, "gate_up", 3), dy = make.random({9, cols}, "dy"), y = make.empty({9, cols}),
                   d = make.empty({9, 2 * cols});
      on_both(pairing(), {&y, &d}, 4, [&](Backend& backend, auto of) {
        backend.swiglu(of(gate_up), of(y));
        backend.swiglu_backward(of(dy), of(gate_up), of(d));
      });
      for (Operand& o : fetched({&y, &d})) all.push_back(std::move(o));
    }
    return all;
  });
}

TEST_F(Cuda, DropoutHasTheMaskOfTheCpu) {
  for_kinds(*this, [&](DType dtype, std::size_t skew) {
    std::vector<Operand> all;
    const Maker make{pairing(), dtype, skew};
    const Window window{.samples = 2, .rows = 3, .first = 4, .whole = 9};
    for (std::int64_t cols : {5, 64, 301, 520}) {
      const Shape shape{2, 3, cols};
      const Mirror x = make.random(shape, "x"), branch = make.random(shape, "branch"), bias = make.random({cols}, "bias"),
                   none(pairing(), Operand({1}, dtype));
      const Mirror dropped = make.empty(shape), plain = make.empty(shape), biased = make.empty(shape), without = make.empty(shape),
                   copied = make.empty(shape), in_place = make.random(shape, "in place");
      on_both(pairing(), {&dropped, &plain, &biased, &without, &copied, &in_place}, 1, [&](Backend& backend, auto of) {
        backend.dropout(of(x), drop, window, of(dropped));
        backend.dropout(of(x), {}, window, of(copied));
        backend.residual(of(x), of(branch), {}, drop, window, of(plain));
        backend.residual(of(x), of(branch), of(bias), drop, window, of(biased));
        backend.residual(of(x), of(branch), of(bias), {}, window, of(without));
        backend.residual(of(in_place), of(branch), of(bias), drop, window, of(in_place));
      });
      const Operand got = dropped.fetched();
      for (std::int64_t i = 0; i < x.count(); ++i) EXPECT_EQ(got[i] == 0, dropped.on_host()[i] == 0) << "element " << i;
      for (Operand& o : fetched({&dropped, &plain, &biased, &without, &copied, &in_place})) all.push_back(std::move(o));
    }
    return all;
  });
}

namespace mindpipe::testing {
/// Columns of rows that a warp holds, a block holds, that are no whole groups, and that are too long for a block's registers.
inline constexpr std::int64_t row_lengths[] = {1, 5, 64, 770, 1032, 4104, 16400};
}  // namespace mindpipe::testing

TEST_F(Cuda, NormOfRowsOfAnyLength) {
  for_kinds(*this, [&](DType dtype, std::size_t skew) {
    std::vector<Operand> all;
    const Maker make{pairing(), dtype, skew};
    for (NormKind kind : {NormKind::layer, NormKind::rms})
      for (std::int64_t cols : row_lengths) {
        const std::int64_t rows = cols < 100 ? 7 : 3;
        const Mirror x = make.random({rows, cols}, "x", 2), gain = make.random({cols}, "gain"), offset = make.random({cols}, "offset"),
                     dy = make.random({rows, cols}, "dy");
        const Mirror statistics = make.empty_wide({rows, 2}), y = make.empty({rows, cols}), dx = make.empty({rows, cols}),
                     in_place = make.random({rows, cols}, "residual");
        const bool with_offset = kind == NormKind::layer;
        on_both(pairing(), {&statistics, &y, &dx, &in_place}, cols == 1 ? 1000 : 8, [&](Backend& backend, auto of) {
          backend.norm(kind, of(x), of(gain), with_offset ? of(offset) : Tensor{}, 1e-5, of(statistics), of(y));
          backend.norm_backward_input(kind, of(dy), of(x), of(gain), of(statistics), {}, of(dx));
          backend.norm_backward_input(kind, of(dy), of(x), of(gain), of(statistics), of(in_place), of(in_place));
        });
        for (Operand& o : fetched({&statistics, &y, &dx, &in_place})) all.push_back(std::move(o));
      }
    return all;
  });
}

TEST_F(Cuda, ResidualNormIsTheSumAndItsNorm) {
  for_kinds(*this, [&](DType dtype, std::size_t skew) {
    std::vector<Operand> all;
    const Maker make{pairing(), dtype, skew};
    const Window window{.samples = 2, .rows = 2, .first = 3, .whole = 9};
    for (std::int64_t cols : row_lengths) {
      const Shape shape{2, 2, cols};
      const Mirror x = make.random(shape, "x", 2), branch = make.random(shape, "branch"), bias = make.random({cols}, "bias"),
                   gain = make.random({cols}, "gain");
      const Mirror sum = make.empty(shape), statistics = make.empty_wide({4, 2}), y = make.empty(shape);
      on_both(pairing(), {&sum, &statistics, &y}, cols == 1 ? 4000 : 16, [&](Backend& backend, auto of) {
        backend.residual_norm(of(x), of(branch), of(bias), drop, window, of(sum), NormKind::layer, of(gain), {}, 1e-5, of(statistics),
                              of(y));
      });
      // The very bits of one after the other.
      const Mirror sum_alone = make.empty(shape), statistics_alone = make.empty_wide({4, 2}), y_alone = make.empty(shape);
      pairing().gpu->residual(x.device(), branch.device(), bias.device(), drop, window, sum_alone.device());
      pairing().gpu->norm(NormKind::layer, sum_alone.device(), gain.device(), {}, 1e-5, statistics_alone.device(), y_alone.device());
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
      const Mirror x = make.random({6, cols}, "x"), gain = make.random({cols}, "gain"), dy = make.random({6, cols}, "dy");
      const Mirror statistics = make.empty_wide({6, 2}), y = make.empty({6, cols}), dx = make.empty({6, cols});
      Backend& gpu = *pairing().gpu;
      gpu.norm(NormKind::layer, x.device(), gain.device(), gain.device(), 1e-5, statistics.device(), y.device());
      gpu.norm_backward_input(NormKind::layer, dy.device(), x.device(), gain.device(), statistics.device(), {}, dx.device());
      for (std::int64_t n : {0, 3, 5}) {
        const Mirror statistics_alone = make.empty_wide({1, 2}), y_alone = make.empty({1, cols}), dx_alone = make.empty({1, cols});
        gpu.norm(NormKind::layer, x.device().row_range(n, 1), gain.device(), gain.device(), 1e-5, statistics_alone.device(),
                 y_alone.device());
        gpu.norm_backward_input(NormKind::layer, dy.device().row_range(n, 1), x.device().row_range(n, 1), gain.device(),
                                statistics_alone.device(), {}, dx_alone.device());
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
    for (const Case& c : {Case{1, 1, 5, 1}, Case{2, 74, 136, 2}, Case{3, 40, 33, 4}, Case{1, 700, 8, 1}, Case{1, 9000, 12, 1}}) {
      const Shape shape{c.samples, c.rows, c.cols}, sums{c.parts, c.cols};
      const Mirror dy = make.random(shape, "dy"), x = make.random(shape, "x"),
                   statistics = make.wide({c.samples * c.rows, 2}, "statistics");
      const Mirror db = make.wide(sums, "db"), dgain = make.wide(sums, "dgain"), doffset = make.wide(sums, "doffset"),
                   dgain_only = make.wide(sums, "only");
      on_both(pairing(), {&db, &dgain, &doffset, &dgain_only}, 4.0 * static_cast<double>(c.rows), [&](Backend& backend, auto of) {
        backend.bias_backward(of(dy), of(db));
        backend.norm_backward_parameters(NormKind::layer, of(dy), of(x), of(statistics), of(dgain), of(doffset));
        backend.norm_backward_parameters(NormKind::rms, of(dy), of(x), of(statistics), of(dgain_only), {});
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
    pairing().gpu->bias_backward(dy.device(), db.device());
    for (std::int64_t p = 0; p < parts; ++p) {
      const Mirror alone(pairing(), Operand({1, cols}, DType::f32));
      pairing().gpu->bias_backward(dy.device().row_range(p * in_part, in_part), alone.device());
      EXPECT_TRUE(same_bits(alone.fetched(), db.fetched().tensor().row_range(p, 1)));
    }
  }
}

TEST_F(Cuda, RotaryTurnsHeadsAndBack) {
  for_kinds(*this, [&](DType dtype, std::size_t skew) {
    std::vector<Operand> all;
    const Maker make{pairing(), dtype, skew};
    for (std::int64_t width : {2, 6, 64}) {
      const Mirror turned = make.random({2, 5, 4, width}, "heads"), back = make.random({2, 5, 4, width}, "heads");
      on_both(pairing(), {&turned, &back}, 2, [&](Backend& backend, auto of) {
        backend.rotary({of(turned), 1, 2}, 10000, 3, false);
        backend.rotary({of(back), 0, 4}, 500, 70000, true);
      });
      for (Operand& o : fetched({&turned, &back})) all.push_back(std::move(o));
    }
    return all;
  });
}

namespace mindpipe::testing {
/// Tokens of which some repeat often, and some lie outside of the table [first, first + rows).
inline Operand some_tokens(std::int64_t n, std::int64_t first, std::int64_t rows) {
  const RandomStream stream{.seed = 3, .purpose = purpose_of("tokens")};
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint32_t word = stream.word(static_cast<std::uint64_t>(i));
    ids.push_back(static_cast<std::int32_t>(
        word % 3 == 0 ? first + 2 : static_cast<std::int64_t>(word % static_cast<std::uint32_t>(rows + 20)) + first - 10));
  }
  return Operand::tokens(ids);
}
}  // namespace mindpipe::testing

TEST_F(Cuda, EmbeddingAndItsGradientInTheOrderOfTheTokens) {
  for_kinds(*this, [&](DType dtype, std::size_t skew) {
    std::vector<Operand> all;
    const Maker make{pairing(), dtype, skew};
    struct Case {
      std::int64_t n, rows, cols, first;
    };
    for (const Case& c : {Case{1, 3, 1, 0}, Case{37, 5, 13, 100}, Case{2100, 300, 24, 0}, Case{64, 70000, 8, 12}}) {
      const Mirror tokens(pairing(), some_tokens(c.n, c.first, c.rows)), table = make.random({c.rows, c.cols}, "table"),
                                                                         dy = make.random({c.n, c.cols}, "dy");
      const Mirror y = make.empty({c.n, c.cols}), dtable = make.wide({c.rows, c.cols}, "dtable");
      on_both(pairing(), {&y, &dtable}, 1, [&](Backend& backend, auto of) {
        backend.embedding(of(tokens), of(table), c.first, of(y));
        backend.embedding_backward(of(tokens), of(dy), c.first, of(dtable));
      });
      EXPECT_TRUE(same_bits(y.fetched(), y.on_host()));
      EXPECT_TRUE(same_bits(dtable.fetched(), dtable.on_host())) << "both add one token after the other";
      for (Operand& o : fetched({&y, &dtable})) all.push_back(std::move(o));
    }
    return all;
  });
}

TEST_F(Cuda, Positions) {
  for_kinds(*this, [&](DType dtype, std::size_t skew) {
    std::vector<Operand> all;
    const Maker make{pairing(), dtype, skew};
    const Window window{.samples = 3, .rows = 4, .first = 2, .whole = 8};
    for (std::int64_t cols : {1, 24, 77}) {
      const Mirror x = make.random({3, 4, cols}, "x"), positions = make.random({12, cols}, "positions"), y = make.empty({3, 4, cols}),
                   d = make.wide({12, cols}, "d");
      on_both(pairing(), {&y, &d}, 1, [&](Backend& backend, auto of) {
        backend.add_positions(of(x), of(positions), window, 5, of(y));
        backend.positions_backward(of(x), window, 5, of(d));
      });
      for (Operand& o : fetched({&y, &d})) all.push_back(std::move(o));
    }
    return all;
  });
}

TEST_F(Cuda, ClassifierOverAShardOfTheVocabulary) {
  for_kinds(*this, [&](DType dtype, std::size_t skew) {
    std::vector<Operand> all;
    const Maker make{pairing(), dtype, skew};
    struct Case {
      std::int64_t cols, valid, first;
    };
    for (const Case& c : {Case{1, 1, 0}, Case{64, 50, 64}, Case{2500, 2499, 0}, Case{4352, 4300, 128}}) {
      const std::int64_t rows = 5;
      const Mirror targets(pairing(),
                           Operand::tokens({static_cast<std::int32_t>(c.first), -1, static_cast<std::int32_t>(c.first + c.valid - 1),
                                            static_cast<std::int32_t>(c.first + c.valid), 0}));
      const Mirror logits = make.wide({rows, c.cols}, "logits"), maximum = make.empty_wide({rows}), sums = make.empty_wide({rows}),
                   of_target = make.empty_wide({rows}), total = make.empty_wide({rows}), losses = make.empty_wide({rows}),
                   dlogits = make.empty({rows, c.cols}), in_place = make.wide({rows, c.cols}, "logits");
      on_both(pairing(), {&maximum, &sums, &of_target, &total, &losses, &dlogits, &in_place}, 64, [&](Backend& backend, auto of) {
        backend.row_maximum(of(logits), c.valid, of(maximum));
        backend.row_sums(of(logits), c.valid, c.first, of(targets), of(maximum), of(sums), of(of_target), of(total));
        backend.cross_entropy(of(targets), of(maximum), of(sums), of(of_target), of(total), 0.1, 4300, of(losses));
        backend.cross_entropy_backward(of(logits), c.valid, c.first, of(targets), of(maximum), of(sums), 3.0, 0.1, 4300, of(dlogits));
        backend.cross_entropy_backward(of(in_place), c.valid, c.first, of(targets), of(maximum), of(sums), 3.0, 0.1, 4300, of(in_place));
      });
      EXPECT_TRUE(same_bits(maximum.fetched(), maximum.on_host()));
      for (Operand& o : fetched({&maximum, &sums, &of_target, &total, &losses, &dlogits, &in_place})) all.push_back(std::move(o));
    }
    return all;
  });
}

TEST_F(Cuda, SumsOfSquaresByChunks) {
  for_kinds(*this, [&](DType dtype, std::size_t skew) {
    std::vector<Operand> all;
    const Maker make{pairing(), dtype, skew};
    for (std::int64_t n : {1, 16384, 40003}) {
      const Mirror x = make.random({n}, "x"), sums(pairing(), Operand({(n + statistics_chunk - 1) / statistics_chunk}, DType::f64));
      pairing().cpu->sum_squares(x.host(), sums.host());
      pairing().gpu->sum_squares(x.device(), sums.device());
      const Operand got = sums.fetched();
      for (std::int64_t i = 0; i < got.count(); ++i) EXPECT_NEAR(got[i], sums.on_host()[i], 1e-5 * sums.on_host()[i]);
      all.push_back(got);
    }
    return all;
  });
}

TEST_F(Cuda, CountsWhatIsNotFinite) {
  for_kinds(*this, [&](DType dtype, std::size_t skew) {
    for (std::int64_t n : {1, 5000}) {
      Operand x = Operand::random({n}, dtype, "x", 1, skew);
      EXPECT_EQ(pairing().gpu->count_not_finite(Mirror(pairing(), x, skew).device()), 0);
      x.set(0, INFINITY), x.set(n - 1, -INFINITY), x.set(n / 2, INFINITY);
      EXPECT_EQ(pairing().gpu->count_not_finite(Mirror(pairing(), x, skew).device()), n == 1 ? 1 : 3);
      x.set(n - 1, std::nan(""));
      EXPECT_EQ(pairing().gpu->count_not_finite(Mirror(pairing(), x, skew).device()), n == 1 ? 1 : 3);
    }
    return std::vector<Operand>{};
  });
}

TEST_F(Cuda, Updates) {
  for_kinds(*this, [&](DType dtype, std::size_t skew) {
    const std::int64_t n = 3001;
    const Maker make{pairing(), dtype, skew};
    Operand squares = Operand::random({n}, wide_of(dtype), "v", 1, skew);
    for (std::int64_t i = 0; i < n; ++i) squares.set(i, squares[i] * squares[i]);
    const Mirror g = make.wide({n}, "g"), master = make.wide({n}, "p"), m = make.wide({n}, "m"), v(pairing(), squares, skew),
                 value = make.empty({n});
    const Mirror master_alone = make.wide({n}, "p"), m_alone = make.wide({n}, "m"), v_alone(pairing(), squares, skew);
    const Mirror sgd_master = make.wide({n}, "p"), velocity = make.wide({n}, "velocity"), sgd_value = make.empty({n}),
                 plain_master = make.wide({n}, "p");
    Operand skipped = decided({}, 3, 0.7);
    skipped.set(Decision::skipped, 1);
    const Mirror made(pairing(), decided({}, 3, 0.7)), none(pairing(), skipped);
    const std::vector<const Mirror*> outputs{&master,  &m,          &v,        &value,     &master_alone, &m_alone,
                                             &v_alone, &sgd_master, &velocity, &sgd_value, &plain_master};
    on_both(pairing(), outputs, 4, [&](Backend& backend, auto of) {
      const AdamW rule{.rate = 0.01f, .decay = 0.1f};
      backend.adamw(rule, of(made), of(g), of(master), of(m), of(v), of(value));
      backend.adamw(rule, of(made), of(g), of(master_alone), of(m_alone), of(v_alone), {});
      backend.sgd({.rate = 0.1f, .momentum = 0.9f, .decay = 0.01f, .nesterov = true}, of(made), of(g), of(sgd_master), of(velocity),
                  of(sgd_value));
      backend.sgd({.rate = 0.1f}, of(made), of(g), of(plain_master), {}, {});
      backend.adamw(rule, of(none), of(g), of(sgd_master), of(velocity), of(plain_master), of(sgd_value));
      backend.sgd({.rate = 0.1f}, of(none), of(g), of(plain_master), {}, {});
    });
    return fetched(outputs);
  });
}

TEST_F(Cuda, AddsSpansInOrderAndDecidesAsTheCpuDoes) {
  for_orders([&] {
    for (DType dtype : {DType::f64, DType::f32}) {
      const Mirror x(pairing(), Operand::random({1700}, dtype, "losses")),
          spans(pairing(), Operand::tokens({0, 1700, 9, 9, 300, 813, 5, 6})), totals(pairing(), Operand({4}, DType::f64));
      on_both(pairing(), {}, 1, [&](Backend& backend, auto of) { backend.sum_spans(of(x), of(spans), of(totals)); });
      EXPECT_TRUE(same_bits(totals.fetched(), totals.on_host())) << name_of(dtype);
    }
    const Mirror decision(pairing(), Operand({Decision::places}, DType::f64));
    for (const auto& [loss, squares, valid] :
         {std::tuple{96.0, 36.0, 32.0}, {90.0, 1e-3, 64.0}, {1.0, std::nan(""), 64.0}, {0.0, 0.0, 0.0}}) {
      Operand numbers({2}, DType::f64);
      numbers.set(0, loss), numbers.set(1, squares);
      const Mirror sums(pairing(), numbers);
      on_both(pairing(), {&decision}, 1, [&](Backend& backend, auto of) {
        backend.decide({.loss_factor = 1.0 / 64, .valid = valid, .clip = 3, .beta1 = 0.9f, .beta2 = 0.999f}, of(sums), of(decision));
      });
    }
  });
}

TEST_F(Cuda, MovesBytesAndKeepsQueuesInOrder) {
  const std::int64_t n = (std::int64_t{36} << 20) / 4 + 3;  // more than all slots of pinned memory
  Backend& gpu = *pairing().gpu;
  Arena room(pairing().memory, MemoryClass::workspace, 3 * aligned(static_cast<std::size_t>(4 * n)));
  const Tensor a = room.take({n}, DType::i32), b = room.take({n}, DType::i32);
  std::vector<std::int32_t> sent(static_cast<std::size_t>(n)), back(sent.size());
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::int32_t>(i * 2654435761u);
  const std::vector<std::int32_t> kept = sent;
  gpu.use_queue(1);
  gpu.upload(sent.data(), a);
  std::fill(sent.begin(), sent.end(), 0);  // upload has taken what it needs
  const std::uint64_t arrived = gpu.record(1);
  gpu.use_queue(0);
  gpu.wait(0, arrived);
  gpu.copy(a, b);
  const std::uint64_t copied = gpu.record(0);
  gpu.use_queue(2);
  gpu.wait(2, copied);
  gpu.download(b, back.data());
  EXPECT_EQ(back, kept);
  for (int i = 0; i < 5000; ++i) gpu.record(i % 3);  // the ring goes round
  gpu.synchronize();
  EXPECT_TRUE(gpu.finished(arrived));
  gpu.wait(0, arrived);
  gpu.use_queue(0);
  std::vector<std::int32_t> host(static_cast<std::size_t>(n), 5);
  const Tensor ordinary{host.data(), {n}, DType::i32};
  gpu.copy(ordinary, a);  // from memory that the GPU does not know
  gpu.copy(b, ordinary);
  gpu.download(a, back.data());
  EXPECT_EQ(host, kept);
  EXPECT_EQ(back[0] + back.back(), 10);
}

TEST_F(Cuda, RefusesOperandsThatDoNotFit) {
  const Mirror a(pairing(), Operand({8}, DType::f32)), shorter(pairing(), Operand({7}, DType::f32)),
      ids(pairing(), Operand({8}, DType::i32));
  Backend& gpu = *pairing().gpu;
  EXPECT_THROW(gpu.add(a.device(), shorter.device(), a.device()), Error);
  EXPECT_THROW(gpu.add(ids.device(), ids.device(), ids.device()), Error);
  EXPECT_THROW(gpu.use_queue(17), Error);
  gpu.use_queue(3);
  EXPECT_THROW(gpu.count_not_finite(a.device()), Error) << "the workspace belongs to the compute queue";
  gpu.use_queue(0);
}
