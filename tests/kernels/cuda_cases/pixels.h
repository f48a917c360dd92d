#pragma once
#include "kernels/cuda_cases/shared.h"

/// Windows on pictures, and batch norm.

TEST_F(Cuda, WindowsOnPictures) {
  for_kinds(*this, [&](DType dtype, std::size_t skew) {
    std::vector<Operand> all;
    const Maker make{pairing(), dtype, skew};
    for (const PixelWindow& w :
         {PixelWindow{7, 5, 3, 1, 1}, PixelWindow{7, 6, 3, 2, 1}, PixelWindow{5, 7, 3, 1, 2}})
      for (std::int64_t channels : {3, 16}) {
        const std::int64_t taps = w.taps();
        const Mirror x = make.random({3, w.pixels(), channels}, "x"),
                     dy = make.random({3, w.windows(), channels}, "dy"),
                     weights = make.random({taps, channels}, "w"),
                     dneighbours = make.random({3, w.windows(), taps * channels}, "dneighbours");
        const Mirror neighbours = make.empty({3, w.windows(), taps * channels}),
                     y = make.empty({3, w.windows(), channels}),
                     from_neighbours = make.empty({3, w.pixels(), channels}),
                     dx = make.empty({3, w.pixels(), channels}),
                     parts = make.empty_wide({pixel_chunks(3 * w.windows()), taps, channels});
        on_both(pairing(), {&neighbours, &y, &from_neighbours, &dx, &parts}, 1,
                [&](Backend& backend, auto of) {
                  backend.pixel_neighbours({of(x), w, of(neighbours)});
                  backend.pixel_neighbours_backward({of(dneighbours), w, of(from_neighbours)});
                  backend.pixel_depthwise({of(x), of(weights), w, of(y)});
                  backend.pixel_depthwise_backward_input({of(dy), of(weights), w, of(dx)});
                  backend.pixel_depthwise_backward_weight({of(dy), of(x), w, of(parts)});
                });
        for (Operand& o : fetched({&neighbours, &y, &from_neighbours, &dx, &parts}))
          all.push_back(std::move(o));
      }
    return all;
  });
}

TEST_F(Cuda, PoolsOfPictures) {
  for_kinds(*this, [&](DType dtype, std::size_t skew) {
    std::vector<Operand> all;
    const Maker make{pairing(), dtype, skew};
    for (const PixelWindow& w : {PixelWindow{7, 5, 3, 1, 1}, PixelWindow{7, 6, 3, 2, 1}})
      for (std::int64_t channels : {3, 16}) {
        const Mirror x = make.random({3, w.pixels(), channels}, "x"),
                     dy = make.random({3, w.windows(), channels}, "dy"),
                     dpooled = make.random({3, channels}, "dpooled");
        const Mirror largest = make.empty({3, w.windows(), channels}),
                     mean = make.empty({3, w.windows(), channels}),
                     dlargest = make.empty({3, w.pixels(), channels}),
                     dmean = make.empty({3, w.pixels(), channels}), pooled = make.empty({3, channels}),
                     dx = make.empty({3, w.pixels(), channels}),
                     chosen(pairing(), Operand({3, w.windows(), channels}, DType::u8, skew), skew);
        on_both(pairing(), {&largest, &mean, &dlargest, &dmean, &pooled, &dx, &chosen}, 1,
                [&](Backend& backend, auto of) {
                  backend.pool({PoolKind::maximum, of(x), w, of(largest), of(chosen)});
                  backend.pool({PoolKind::average, of(x), w, of(mean)});
                  backend.pool_backward({PoolKind::maximum, of(dy), of(chosen), w, of(dlargest)});
                  backend.pool_backward({PoolKind::average, of(dy), {}, w, of(dmean)});
                  backend.global_pool({of(x), of(pooled)});
                  backend.global_pool_backward({of(dpooled), of(dx)});
                });
        for (Operand& o : fetched({&largest, &mean, &dlargest, &dmean, &pooled, &dx, &chosen}))
          all.push_back(std::move(o));
      }
    return all;
  });
}

TEST_F(Cuda, TransposesWeights) {
  for_kinds(*this, [&](DType dtype, std::size_t skew) {
    const Maker make{pairing(), dtype, skew};
    const Mirror x = make.random({3, 9, 5}, "x"), y = make.empty({3, 5, 9}),
                 from = make.wide({3, 9, 5}, "from"), total = make.wide({3, 5, 9}, "total");
    on_both(pairing(), {&y, &total}, 0, [&](Backend& backend, auto of) {
      backend.transpose({of(x), false, of(y)});
      backend.transpose({of(from), true, of(total)});
    });
    return fetched({&y, &total});
  });
}

TEST_F(Cuda, BatchNorms) {
  for_kinds(*this, [&](DType dtype, std::size_t skew) {
    std::vector<Operand> all;
    const Maker make{pairing(), dtype, skew};
    for (bool relu : {false, true})
      for (std::int64_t cols : {3, 16}) {
        const std::int64_t rows = 300, chunks = pixel_chunks(rows);
        const Mirror x = make.random({rows, cols}, "x"), dy = make.random({rows, cols}, "dy"),
                     residual = make.random({rows, cols}, "residual"), gain = make.random({cols}, "gain"),
                     offset = make.random({cols}, "offset"), sums = make.wide({2, cols}, "sums");
        const Mirror parts = make.empty_wide({chunks, 2, cols}), statistics = make.empty_wide({3, cols}),
                     sum_parts = make.empty_wide({chunks, 2, cols}), y = make.empty({rows, cols}),
                     dx = make.empty({rows, cols}), plain = make.empty({rows, cols});
        on_both(pairing(), {&parts, &statistics, &sum_parts, &y, &dx, &plain}, 8,
                [&](Backend& backend, auto of) {
                  backend.batch_moments({of(x), of(parts)});
                  backend.batch_statistics({of(parts), rows, 1e-5, of(statistics)});
                  backend.batch_norm({of(x), of(statistics), of(gain), of(offset), relu, of(y)});
                  backend.batch_norm_backward_sums(
                      {of(dy), of(x), of(statistics), of(gain), of(offset), relu, of(sum_parts)});
                  backend.batch_norm_backward_input({of(dy), of(x), of(statistics), of(gain), of(offset),
                                                     of(sums), relu, of(residual), of(dx)});
                  backend.batch_norm_backward_input(
                      {of(dy), of(x), of(statistics), of(gain), of(offset), of(sums), relu, {}, of(plain)});
                });
        for (Operand& o : fetched({&parts, &statistics, &sum_parts, &y, &dx, &plain}))
          all.push_back(std::move(o));
      }
    return all;
  });
}

TEST_F(Cuda, RunningMeans) {
  for_kinds(*this, [&](DType dtype, std::size_t skew) {
    const Maker make{pairing(), dtype, skew};
    const Mirror sum = make.wide({301}, "sum"), master = make.wide({301}, "master"),
                 value = make.empty({301}), decision(pairing(), Operand({Decision::places}, DType::f64));
    on_both(pairing(), {&master, &value}, 1, [&](Backend& backend, auto of) {
      backend.running_mean(
          {0.1, 0.25, of(decision), of(sum), of(master), dtype == DType::bf16 ? of(value) : Tensor{}});
    });
    return fetched({&master, &value});
  });
}
