#pragma once
#include "kernels/cuda_cases/shared.h"
#include "kernels/integers_model.h"

/// Gradients as whole numbers: nothing may differ from the CPU, so nothing is allowed to.

TEST_F(Cuda, AddsGradientsAsIntegersAndMakesGradientsOfThem) {
  const auto check = [&](std::size_t skew) {
    for (std::int64_t n : {1, 3, 4, 1003, 5000}) {
      const Operand start = any_totals(n, skew);
      for (std::int64_t i = 0; i < n; ++i) start.tensor().as<std::int64_t>()[i] /= 2;
      const Mirror gradient(pairing(), any_gradients(n, skew), skew), totals(pairing(), start, skew),
          marks(pairing(), Operand({1}, DType::i64)), none(pairing(), Operand({1}, DType::i64)),
          made(pairing(), Operand({n}, DType::f32, skew), skew), marked(pairing(), any_totals(n, skew), skew),
          nothing(pairing(), Operand({n}, DType::f32, skew), skew), sum(pairing(), start, skew),
          filled(pairing(), start, skew);
      const std::vector<const Mirror*> outputs{&gradient, &totals, &marks, &none,
                                               &made,     &marked, &sum,   &filled};
      on_both(pairing(), {&nothing}, 0, [&](Backend& backend, auto of) {
        backend.add_as_integers({of(gradient), of(totals), of(marks)});
        backend.add({of(sum), of(totals), of(sum)});
        backend.fill({of(filled), 7});
        backend.add_tree({{of(filled), of(filled), of(filled)}, {0, 1, 1}, of(filled)});
        backend.from_integers({of(totals), of(none), of(made)});
        if (n > 1000) backend.from_integers({of(marked), of(marks), of(nothing)});
      });
      for (std::size_t i = 0; i < outputs.size(); ++i)
        EXPECT_TRUE(same_bits(outputs[i]->fetched(), outputs[i]->on_host()))
            << n << " elements, output " << i;
      if (n > 1000) {
        EXPECT_TRUE(std::isnan(nothing.fetched()[n - 1]));
      }
    }
  };
  for_orders([&] { check(0); });
  check(1);
}
