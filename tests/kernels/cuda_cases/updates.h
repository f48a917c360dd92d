#pragma once
#include "kernels/cuda_cases/shared.h"

/// Statistics of gradients, and updates.

TEST_F(Cuda, SumsOfSquaresByChunks) {
  for_kinds(*this, [&](DType dtype, std::size_t skew) {
    std::vector<Operand> all;
    const Maker make{pairing(), dtype, skew};
    for (std::int64_t n : {1, 16384, 40003}) {
      const Mirror x = make.random({n}, "x"), sums(pairing(), Operand({statistics_chunks(n)}, DType::f64));
      pairing().cpu->sum_squares({x.host(), sums.host()});
      pairing().gpu->sum_squares({x.device(), sums.device()});
      const Operand got = sums.fetched();
      for (std::int64_t i = 0; i < got.count(); ++i)
        EXPECT_NEAR(got[i], sums.on_host()[i], 1e-5 * sums.on_host()[i]);
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
      x.set(0, INFINITY);
      x.set(n - 1, -INFINITY);
      x.set(n / 2, INFINITY);
      EXPECT_EQ(pairing().gpu->count_not_finite(Mirror(pairing(), x, skew).device()), n == 1 ? 1 : 3);
      x.set(n - 1, std::nan(""));
      EXPECT_EQ(pairing().gpu->count_not_finite(Mirror(pairing(), x, skew).device()), n == 1 ? 1 : 3);
    }
    return std::vector<Operand>{};
  });
}

TEST_F(Cuda, HashesAsTheProcessorDoes) {
  for_kinds(*this, [&](DType dtype, std::size_t skew) {
    for (std::int64_t n : {1, 5001}) {
      const Operand x = Operand::random({n}, dtype, "x", 1, skew);
      EXPECT_EQ(pairing().gpu->hash(Mirror(pairing(), x, skew).device()), pairing().cpu->hash(x));
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
    const Mirror g = make.wide({n}, "g"), master = make.wide({n}, "p"), m = make.wide({n}, "m"),
                 v(pairing(), squares, skew), value = make.empty({n});
    const Mirror master_alone = make.wide({n}, "p"), m_alone = make.wide({n}, "m"),
                 v_alone(pairing(), squares, skew);
    const Mirror sgd_master = make.wide({n}, "p"), velocity = make.wide({n}, "velocity"),
                 sgd_value = make.empty({n}), plain_master = make.wide({n}, "p");
    Operand skipped = decided({}, 3, 0.7);
    skipped.set(Decision::skipped, 1);
    const Mirror made(pairing(), decided({}, 3, 0.7)), none(pairing(), skipped);
    const std::vector<const Mirror*> outputs{&master,       &m,         &v,           &value,
                                             &master_alone, &m_alone,   &v_alone,     &sgd_master,
                                             &velocity,     &sgd_value, &plain_master};
    on_both(pairing(), outputs, 4, [&](Backend& backend, auto of) {
      const AdamW rule{.rate = 0.01f, .decay = 0.1f};
      backend.adamw({rule, of(made), of(g), of(master), of(m), of(v), of(value)});
      backend.adamw({.rule = rule,
                     .decision = of(made),
                     .gradient = of(g),
                     .master = of(master_alone),
                     .m = of(m_alone),
                     .v = of(v_alone)});
      backend.sgd({{.rate = 0.1f, .momentum = 0.9f, .decay = 0.01f, .nesterov = true},
                   of(made),
                   of(g),
                   of(sgd_master),
                   of(velocity),
                   of(sgd_value)});
      backend.sgd(
          {.rule = {.rate = 0.1f}, .decision = of(made), .gradient = of(g), .master = of(plain_master)});
      backend.adamw({rule, of(none), of(g), of(sgd_master), of(velocity), of(plain_master), of(sgd_value)});
      backend.sgd(
          {.rule = {.rate = 0.1f}, .decision = of(none), .gradient = of(g), .master = of(plain_master)});
    });
    return fetched(outputs);
  });
}

/// More ranges than a launch takes, of every length, the first at an odd place and gaps between some.
struct ManyRanges {
  std::vector<FlatSpan> fills;
  std::vector<SquaresSpan> squares;
  std::vector<UpdateSpan> updates;
  std::int64_t elements = 3, sums = 0;

  ManyRanges() {
    const std::int64_t lengths[] = {4, 0, 1, 257, 64, 1030};
    for (std::int64_t i = 0; i < most_spans + 16; ++i) {
      const FlatSpan span{elements, i == 40 ? statistics_chunk + 5 : lengths[i % 6]};
      fills.push_back(span);
      squares.push_back({span, sums});
      updates.push_back({span, 0.25f * static_cast<float>(i % 3)});
      elements += span.count + i % 2;
      sums += statistics_chunks(span.count);
    }
  }
};

/// What operations on ranges write: together, or one after the other.
struct WrittenRanges {
  Mirror master, m, v, value, sgd_master, velocity, sgd_value, filled, sums;

  WrittenRanges(const Maker& make, const ManyRanges& ranges)
      : master(make.wide({ranges.elements}, "p")),
        m(make.wide({ranges.elements}, "m")),
        v(make.wide({ranges.elements}, "ones")),
        value(make.random({ranges.elements}, "value")),
        sgd_master(make.wide({ranges.elements}, "p")),
        velocity(make.wide({ranges.elements}, "velocity")),
        sgd_value(make.random({ranges.elements}, "value")),
        filled(make.random({ranges.elements}, "filled")),
        sums(make.pairing, Operand({ranges.sums}, DType::f64)) {}
  /// All but the sums of squares, which are of f32.
  std::vector<const Mirror*> agreeing() const {
    return {&master, &m, &v, &value, &sgd_master, &velocity, &sgd_value, &filled};
  }
};

TEST_F(Cuda, SeveralRangesAreOneOperationAfterTheOther) {
  const ManyRanges ranges;
  for_kinds(*this, [&](DType dtype, std::size_t skew) {
    const Maker make{pairing(), dtype, skew};
    const Mirror g = make.wide({ranges.elements}, "g"), x = make.random({ranges.elements}, "x"),
                 step(pairing(), decided({}, 3, 0.7));
    const auto operands = [&](const WrittenRanges& to, auto of) {
      const AdamWOperands adamw{{.rate = 0.01f}, of(step), of(g),       of(to.master),
                                of(to.m),        of(to.v), of(to.value)};
      const SgdOperands sgd{{.rate = 0.1f, .momentum = 0.9f},
                            of(step),
                            of(g),
                            of(to.sgd_master),
                            of(to.velocity),
                            of(to.sgd_value)};
      return std::tuple(AdamWOfSpansOperands{adamw, ranges.updates}, SgdOfSpansOperands{sgd, ranges.updates},
                        FillOfSpansOperands{of(to.filled), 0.5, ranges.fills},
                        SumSquaresOfSpansOperands{of(x), of(to.sums), ranges.squares});
    };
    const WrittenRanges together(make, ranges), apart(make, ranges);
    on_both(pairing(), together.agreeing(), 4, [&](Backend& backend, auto of) {
      const auto [adamw, sgd, fill, squares] = operands(together, of);
      backend.adamw_of_spans(adamw);
      backend.sgd_of_spans(sgd);
      backend.fill_of_spans(fill);
      backend.sum_squares_of_spans(squares);
    });
    Backend& gpu = *pairing().gpu;
    const auto [adamw, sgd, fill, squares] = operands(apart, [](const Mirror& m) { return m.device(); });
    adamw.in_turn([&](const char*, const AdamWOperands& one) {
      if (one.master.count() > 0) gpu.adamw(one);
    });
    sgd.in_turn([&](const char*, const SgdOperands& one) {
      if (one.master.count() > 0) gpu.sgd(one);
    });
    fill.in_turn([&](const char*, const FillOperands& one) {
      if (one.x.count() > 0) gpu.fill(one);
    });
    squares.in_turn([&](const char*, const SumSquaresOperands& one) {
      if (one.x.count() > 0) gpu.sum_squares(one);
    });
    std::vector<Operand> got = fetched(together.agreeing()), expected = fetched(apart.agreeing());
    got.push_back(together.sums.fetched());
    expected.push_back(apart.sums.fetched());
    for (std::size_t i = 0; i < got.size(); ++i)
      EXPECT_TRUE(same_bits(got[i], expected[i])) << "output " << i;
    for (std::int64_t i = 0; i < ranges.sums; ++i)
      EXPECT_NEAR(got.back()[i], together.sums.on_host()[i], 1e-5 * together.sums.on_host()[i]);
    return got;
  });
}

TEST_F(Cuda, AddsSpansAndDecidesAsTheCpuDoes) {
  std::map<DType, Operand> in_first_order;
  for_orders([&] {
    for (DType dtype : {DType::f64, DType::f32}) {
      Operand numbers = Operand::random({1700}, dtype, "losses");
      for (std::int64_t i = 0; i < 513; ++i) numbers.set(1000 + i, numbers[300 + i]);
      const Mirror x(pairing(), numbers),
          spans(pairing(), Operand::tokens({0, 1700, 9, 9, 300, 813, 5, 6, 1000, 1513})),
          totals(pairing(), Operand({5}, DType::f64));
      on_both(pairing(), {&totals}, 1, [&](Backend& backend, auto of) {
        backend.sum_spans({of(x), of(spans), of(totals)});
      });
      const Operand got = totals.fetched();
      EXPECT_EQ(got[1], 0);
      EXPECT_EQ(got[3], numbers[5]);
      EXPECT_EQ(got[2], got[4]) << "equal numbers have an equal sum wherever they begin: " << name_of(dtype);
      const auto [first, is_new] = in_first_order.emplace(dtype, got);
      EXPECT_TRUE(same_bits(got, first->second)) << "whatever the order of threads";
    }
    const Mirror decision(pairing(), Operand({Decision::places}, DType::f64));
    for (const auto& [loss, squares, valid] : {std::tuple{96.0, 36.0, 32.0},
                                               {90.0, 1e-3, 64.0},
                                               {1.0, std::nan(""), 64.0},
                                               {std::nan(""), 1.0, 64.0},
                                               {0.0, 0.0, 0.0}}) {
      Operand numbers({2}, DType::f64);
      numbers.set(0, loss);
      numbers.set(1, squares);
      const Mirror sums(pairing(), numbers);
      on_both(pairing(), {&decision}, 1, [&](Backend& backend, auto of) {
        backend.clip_and_scale(
            {{.loss_factor = 1.0 / 64, .valid = valid, .clip = 3, .beta1 = 0.9f, .beta2 = 0.999f},
             of(sums),
             of(decision)});
      });
    }
  });
}
