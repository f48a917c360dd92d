#pragma once
#include "kernels/cuda_cases/shared.h"

/// Gates, padding, and convolutions over rows.

TEST_F(Cuda, GatesAndActivationsAlone) {
  for_kinds(*this, [&](DType dtype, std::size_t skew) {
    std::vector<Operand> all;
    const Maker make{pairing(), dtype, skew};
    for (std::int64_t cols : {1, 7, 64, 301}) {
      const Mirror both = make.random({9, 2 * cols}, "both", 3), dy = make.random({9, cols}, "dy"),
                   y = make.empty({9, cols}), d = make.empty({9, 2 * cols}), active = make.empty({9, cols});
      for (Activation activation :
           {Activation::relu, Activation::gelu, Activation::silu, Activation::gelu_exact})
        on_both(pairing(), {&y, &d, &active}, 4, [&](Backend& backend, auto of) {
          backend.gate({of(both), of(y)});
          backend.gate_backward({of(dy), of(both), of(d)});
          backend.activation({of(dy), activation, of(active)});
        });
      for (Operand& o : fetched({&y, &d, &active})) all.push_back(std::move(o));
    }
    return all;
  });
}

TEST_F(Cuda, ClearsPaddingAndPadsColumns) {
  for_kinds(*this, [&](DType dtype, std::size_t skew) {
    std::vector<Operand> all;
    const Maker make{pairing(), dtype, skew};
    const Mirror lengths(pairing(), Operand::tokens({0, 2, 9}));
    for (std::int64_t cols : {1, 8, 77}) {
      const std::int64_t whole = 2 * cols + cols % 2;
      const Mirror x = make.random({3, 4, cols}, "x"), sum = make.random({3, 4, whole}, "sum"),
                   cleared = make.empty({3, 4, cols}), padded = make.empty({3, 4, whole}),
                   summed = make.empty({3, 4, whole}), cut = make.empty({3, 4, cols}),
                   behind = make.empty({3, 4, whole}), cut_behind = make.empty({3, 4, cols}),
                   product = make.empty({3, 4, whole});
      const std::int64_t first = whole - cols;
      on_both(pairing(), {&cleared, &padded, &summed, &cut, &behind, &cut_behind, &product}, 0,
              [&](Backend& backend, auto of) {
                backend.clear_padding({of(x), of(lengths), of(cleared)});
                backend.pad_columns({.x = of(x), .y = of(padded)});
                backend.pad_columns({of(x), of(sum), of(summed)});
                backend.cut_columns({of(summed), of(cut)});
                backend.pad_columns({of(x), of(sum), of(behind), first});
                backend.cut_columns({of(behind), of(cut_behind), first});
                backend.multiply_columns({of(sum), of(x), of(product)});
              });
      for (Operand& o : fetched({&cleared, &padded, &summed, &cut, &behind, &cut_behind, &product}))
        all.push_back(std::move(o));
    }
    return all;
  });
}

TEST_F(Cuda, ConvolutionsOverRows) {
  for_kinds(*this, [&](DType dtype, std::size_t skew) {
    std::vector<Operand> all;
    const Maker make{pairing(), dtype, skew};
    const Mirror lengths(pairing(), Operand::tokens({0, 1, 11, 99}));
    for (const Reach& reach : {Reach{1, false}, Reach{3, true}, Reach{11, false}, Reach{15, true}})
      for (std::int64_t cols : {5, 64}) {
        const Shape shape{4, 29, cols}, beside{4, 29, reach.taps * cols};
        const Mirror x = make.random(shape, "x"), w = make.random({reach.taps, cols}, "w"),
                     dy = make.random(shape, "dy"), y = make.empty(shape), dx = make.empty(shape),
                     causal = make.empty(shape), dw = make.wide({reach.taps, cols}, "dw"),
                     neighbours = make.empty(beside), back = make.empty(shape);
        on_both(pairing(), {&y, &dx, &causal, &dw, &neighbours, &back}, 20, [&](Backend& backend, auto of) {
          backend.depthwise({of(x), of(w), of(lengths), reach, of(y)});
          backend.depthwise({of(x), of(w), {}, reach, of(causal)});
          backend.depthwise_backward_input({of(dy), of(w), of(lengths), reach, of(dx)});
          backend.depthwise_backward_weight({of(dy), of(x), of(lengths), reach, of(dw)});
          backend.row_neighbours({of(x), of(lengths), reach, of(neighbours)});
          backend.row_neighbours_backward({of(neighbours), of(lengths), reach, of(back)});
        });
        EXPECT_TRUE(same_bits(neighbours.fetched(), neighbours.on_host()));
        for (Operand& o : fetched({&y, &dx, &causal, &dw, &neighbours, &back})) all.push_back(std::move(o));
      }
    return all;
  });
}

TEST_F(Cuda, AddsManyRowsOfAConvolutionsWeightInChunks) {
  for_kinds(*this, [&](DType dtype, std::size_t skew) {
    const Maker make{pairing(), dtype, skew};
    const Shape shape{3, 500, 9};
    const Mirror x = make.random(shape, "x"), dy = make.random(shape, "dy", 0.1),
                 dw = make.wide({3, 9}, "dw");
    on_both(pairing(), {&dw}, 100, [&](Backend& backend, auto of) {
      backend.depthwise_backward_weight({of(dy), of(x), {}, {3, false}, of(dw)});
    });
    return fetched({&dw});
  });
}

TEST_F(Cuda, SharesTapsAmongChannels) {
  for_kinds(*this, [&](DType dtype, std::size_t skew) {
    const Maker make{pairing(), dtype, skew};
    const Mirror w = make.random({7, 70}, "w", 2), dy = make.wide({7, 280}, "dy"), y = make.empty({7, 280}),
                 dw = make.wide({7, 70}, "dw");
    on_both(pairing(), {&y, &dw}, 4, [&](Backend& backend, auto of) {
      backend.share_taps({of(w), of(y)});
      backend.share_taps_backward({of(dy), of(w), of(dw)});
    });
    return fetched({&y, &dw});
  });
}
