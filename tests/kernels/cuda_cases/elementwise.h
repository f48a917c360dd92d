#pragma once
#include "core/sum_tree.h"
#include "kernels/cuda_cases/shared.h"

/// Element by element, and dropout.

TEST_F(Cuda, AddsAndAccumulates) {
  for_kinds(*this, [&](DType dtype, std::size_t skew) {
    std::vector<Operand> all;
    const Maker make{pairing(), dtype, skew};
    for (std::int64_t n : {1, 7, 8, 2049, 5000}) {
      const Mirror a = make.random({n}, "a"), b = make.random({n}, "b"), sum = make.empty({n}),
                   total = make.wide({n}, "total"), in_place = make.random({n}, "c");
      const Mirror one = make.wide({n}, "one"), other = make.wide({n}, "other"),
                   largest = make.empty_wide({n});
      on_both(pairing(), {&sum, &total, &in_place, &largest}, 1, [&](Backend& backend, auto of) {
        backend.maximum({of(one), of(other), of(largest)});
        backend.add({of(a), of(b), of(sum)});
        backend.accumulate({of(a), of(total)});
        backend.add({of(in_place), of(b), of(in_place)});
      });
      for (Operand& o : fetched({&sum, &total, &in_place, &largest})) all.push_back(std::move(o));
    }
    return all;
  });
}

TEST_F(Cuda, AddsTreesOfTerms) {
  for_kinds(*this, [&](DType dtype, std::size_t skew) {
    std::vector<Operand> all;
    const Maker make{pairing(), dtype, skew};
    for (const auto& [leaves, ranks] : {std::pair(3, 3), {8, 8}, {12, 4}, {64, 64}}) {
      const std::vector<Addition> tree = SumTree(leaves, ranks).of_roots();
      const std::vector<std::uint8_t> joins = joins_of(tree, static_cast<int>(tree.size()) + 1);
      for (const std::int64_t n : {1, 8, 1003}) {
        std::vector<Mirror> terms;
        for (std::size_t i = 0; i < joins.size(); ++i)
          terms.push_back(make.random({n}, "term " + std::to_string(i), 1000));
        const Mirror sum = make.empty({n});
        on_both(pairing(), {}, 0, [&](Backend& backend, auto of) {
          std::vector<Tensor> tensors;
          for (const Mirror& term : terms) tensors.push_back(of(term));
          backend.add_tree({tensors, joins, of(sum)});
          backend.add_tree({tensors, joins, tensors[1]});
        });
        EXPECT_TRUE(same_bits(sum.fetched(), sum.on_host())) << joins.size() << " terms of " << n;
        EXPECT_TRUE(same_bits(terms[1].fetched(), sum.on_host())) << "in the place of a term";
        all.push_back(sum.fetched());
      }
    }
    return all;
  });
}

TEST_F(Cuda, ConvertsAndFills) {
  for_kinds(*this, [&](DType dtype, std::size_t skew) {
    const Maker make{pairing(), dtype, skew};
    const Mirror x = make.random({4099}, "x");
    const Mirror f64(pairing(), Operand({4099}, DType::f64), skew),
        f32(pairing(), Operand({4099}, DType::f32), skew),
        bf16(pairing(), Operand({4099}, DType::bf16), skew);
    const Mirror filled = make.empty({1003});
    on_both(pairing(), {&f64, &f32, &bf16, &filled}, 0, [&](Backend& backend, auto of) {
      for (const Mirror* to : {&f64, &f32, &bf16}) backend.convert({of(x), of(*to)});
      backend.fill({of(filled), -0.7});
    });
    return fetched({&f64, &f32, &bf16, &filled});
  });
}

TEST_F(Cuda, FillsWholeNumbers) {
  for (DType dtype : {DType::i32, DType::u8}) {
    const Mirror x(pairing(), Operand({1001}, dtype), 1);
    on_both(pairing(), {&x}, 0, [&](Backend& backend, auto of) { backend.fill({of(x), 7}); });
  }
}

TEST_F(Cuda, RoundsToBf16ToTheNearestAndTiesToEven) {
  Operand bits({17}, DType::f32);
  const std::uint32_t cases[] = {0x3f800000, 0x3f808000, 0x3f808001, 0x3f818000, 0xbf818000, 0x7f7fffff,
                                 0x7f800000, 0xff800000, 0,          0x80000000, 0x00008000};
  for (int i = 0; i < 17; ++i) bits.tensor().as<std::uint32_t>()[i] = cases[i % std::size(cases)];
  const Mirror x(pairing(), bits), y(pairing(), Operand({17}, DType::bf16));
  on_both(pairing(), {}, 0, [&](Backend& backend, auto of) { backend.convert({of(x), of(y)}); });
  EXPECT_TRUE(same_bits(y.fetched(), y.on_host()));
}

TEST_F(Cuda, Swiglu) {
  for_kinds(*this, [&](DType dtype, std::size_t skew) {
    std::vector<Operand> all;
    const Maker make{pairing(), dtype, skew};
    for (std::int64_t cols : {1, 7, 64, 301}) {
      const Mirror gate_up = make.random({9, 2 * cols}, "gate_up", 3), dy = make.random({9, cols}, "dy"),
                   y = make.empty({9, cols}), d = make.empty({9, 2 * cols});
      on_both(pairing(), {&y, &d}, 4, [&](Backend& backend, auto of) {
        backend.swiglu({of(gate_up), of(y)});
        backend.swiglu_backward({of(dy), of(gate_up), of(d)});
      });
      for (Operand& o : fetched({&y, &d})) all.push_back(std::move(o));
    }
    return all;
  });
}

TEST_F(Cuda, GradientsThroughActivationsAndFactors) {
  for_kinds(*this, [&](DType dtype, std::size_t skew) {
    std::vector<Operand> all;
    const Maker make{pairing(), dtype, skew};
    for (std::int64_t n : {1, 8, 1003})
      for (Activation activation :
           {Activation::relu, Activation::gelu, Activation::silu, Activation::gelu_exact}) {
        const Mirror dy = make.random({n}, "dy"), before = make.random({n}, "before", 3),
                     dx = make.empty({n}), in_place = make.random({n}, "dy"), scaled = make.empty({n});
        on_both(pairing(), {&dx, &in_place, &scaled}, 2, [&](Backend& backend, auto of) {
          backend.activation_backward({of(dy), of(before), activation, of(dx)});
          backend.activation_backward({of(in_place), of(before), activation, of(in_place)});
          backend.scale({of(dy), 22.627416997969522, of(scaled)});
        });
        EXPECT_TRUE(same_bits(scaled.fetched(), scaled.on_host()));
        EXPECT_TRUE(same_bits(dx.fetched(), in_place.fetched()));
        for (Operand& o : fetched({&dx, &scaled})) all.push_back(std::move(o));
      }
    return all;
  });
}

TEST_F(Cuda, DropoutHasTheMaskOfTheCpu) {
  for_kinds(*this, [&](DType dtype, std::size_t skew) {
    std::vector<Operand> all;
    const Maker make{pairing(), dtype, skew};
    for (std::int64_t cols : {5, 64, 301, 520}) {
      const SequencePart sequence{
          .samples = 2, .rows = 3, .first = 4, .whole = 9, .first_col = cols % 8, .whole_cols = 2 * cols};
      const Shape shape{2, 3, cols};
      const Mirror x = make.random(shape, "x"), branch = make.random(shape, "branch"),
                   bias = make.random({cols}, "bias"), none(pairing(), Operand({1}, dtype));
      const Mirror dropped = make.empty(shape), plain = make.empty(shape), biased = make.empty(shape),
                   without = make.empty(shape), copied = make.empty(shape),
                   in_place = make.random(shape, "in place");
      on_both(
          pairing(), {&dropped, &plain, &biased, &without, &copied, &in_place}, 1,
          [&](Backend& backend, auto of) {
            backend.dropout({of(x), drop, sequence, of(dropped)});
            backend.dropout({of(x), {}, sequence, of(copied)});
            backend.residual(
                {.x = of(x), .branch = of(branch), .dropout = drop, .sequence = sequence, .y = of(plain)});
            backend.residual({of(x), of(branch), of(bias), drop, sequence, of(biased)});
            backend.residual(
                {.x = of(x), .branch = of(branch), .bias = of(bias), .sequence = sequence, .y = of(without)});
            backend.residual({of(in_place), of(branch), of(bias), drop, sequence, of(in_place)});
          });
      const Operand got = dropped.fetched();
      for (std::int64_t i = 0; i < x.count(); ++i)
        EXPECT_EQ(got[i] == 0, dropped.on_host()[i] == 0) << "element " << i;
      for (Operand& o : fetched({&dropped, &plain, &biased, &without, &copied, &in_place}))
        all.push_back(std::move(o));
    }
    return all;
  });
}
