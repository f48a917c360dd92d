#include "cuda/launch.h"
#include "kernels/addresses.h"
#include "kernels/cuda_on_host/planted.h"
#include "kernels/on_a_stream.h"

/// Addresses of the first and last blocks of kernels, at the shapes of large models.
using namespace mindpipe;
using namespace mindpipe::testing;

namespace {

TEST_F(Addresses, OfElementsAndRows) {
  for (const Model& m : models) {
    SCOPED_TRACE(m.name);
    const auto x = [&](Space& s) { return s.take(m.x(m.width), bf16); };
    const auto hidden = [&](Space& s) { return s.take(m.x(m.hidden), bf16); };
    const auto some = [&](Space& s) { return s.take_part(m.x(m.hidden), bf16); };
    const auto both = [&](Space& s) { return s.take(m.x(2 * m.hidden), bf16); };
    const SequencePart sequence{.samples = m.samples, .rows = m.rows, .first = 0, .whole = m.rows};
    const Dropout drop{.probability = 0.1f, .stream = {.seed = 1, .purpose = 2, .step = 3, .sample = 4}};
    expect_reached("add", [&](Space& s) { gpu.add({both(s), both(s), both(s)}); });
    expect_reached("swiglu", [&](Space& s) { gpu.swiglu({both(s), hidden(s)}); });
    expect_reached("swiglu_backward", [&](Space& s) { gpu.swiglu_backward({hidden(s), both(s), both(s)}); });
    expect_reached("gate", [&](Space& s) { gpu.gate({both(s), hidden(s)}); });
    expect_reached("gate_backward", [&](Space& s) { gpu.gate_backward({hidden(s), both(s), both(s)}); });
    expect_reached("activation", [&](Space& s) { gpu.activation({both(s), Activation::gelu, both(s)}); });
    expect_reached("activation_backward", [&](Space& s) {
      gpu.activation_backward({both(s), both(s), Activation::gelu, both(s)});
    });
    expect_reached("scale", [&](Space& s) { gpu.scale({both(s), 2, both(s)}); });
    expect_reached("dropout", [&](Space& s) { gpu.dropout({both(s), drop, sequence, both(s)}); });
    expect_reached("residual", [&](Space& s) {
      gpu.residual({both(s), both(s), s.take({2 * m.hidden}, bf16), drop, sequence, both(s)});
    });
    expect_reached("pad_columns", [&](Space& s) { gpu.pad_columns({some(s), both(s), both(s)}); });
    expect_reached("multiply_columns", [&](Space& s) { gpu.multiply_columns({both(s), some(s), both(s)}); });
    expect_reached("add_positions", [&](Space& s) {
      gpu.add_positions({x(s), s.take({m.rows, m.width}, bf16), sequence, 0, x(s)});
    });
    expect_reached("positions_backward", [&](Space& s) {
      gpu.positions_backward({x(s), sequence, 0, s.take({m.rows, m.width}, f32)});
    });
    expect_reached("add_sinusoids",
                   [&](Space& s) { gpu.add_sinusoids({.x = x(s), .sequence = sequence, .y = x(s)}); });
    expect_reached("rotary", [&](Space& s) {
      const Tensor heads = s.take({m.samples, m.rows, m.heads, m.head_width}, bf16);
      gpu.rotary({{heads, 0, static_cast<int>(m.heads)}, rotary_frequencies(1e4, m.head_width), 0, false});
    });
  }
}

TEST_F(Addresses, OfRowsBesideEachOther) {
  const Reach reach{3, true};
  for (const Model& m : models) {
    SCOPED_TRACE(m.name);
    const auto both = [&](Space& s) { return s.take(m.x(2 * m.hidden), bf16); };
    const auto half = [&](Space& s) { return s.take(m.x(m.hidden), bf16); };
    const auto some = [&](Space& s, std::int64_t cols) { return s.take_part(m.x(cols), bf16); };
    const auto taps = [&](Space& s) { return s.take_part({3, 2 * m.hidden}, bf16); };
    const auto lengths = [&](Space& s) {
      const Tensor all = s.take_part({m.samples}, i32);
      std::fill_n(all.as<std::int32_t>(), m.samples, static_cast<std::int32_t>(m.rows));
      return all;
    };
    expect_reached("depthwise", [&](Space& s) {
      gpu.depthwise({both(s), taps(s), lengths(s), reach, both(s)});
    });
    expect_reached("depthwise_backward_input", [&](Space& s) {
      gpu.depthwise_backward_input({both(s), taps(s), lengths(s), reach, both(s)});
    });
    expect_reached("depthwise_backward_weight", [&](Space& s) {
      gpu.depthwise_backward_weight(
          {both(s), both(s), lengths(s), reach, s.take_part({3, 2 * m.hidden}, f32)});
    });
    expect_reached("row_neighbours", [&](Space& s) {
      gpu.row_neighbours({some(s, m.hidden), lengths(s), reach, s.take(m.x(3 * m.hidden), bf16)});
    });
    expect_reached("row_neighbours_backward", [&](Space& s) {
      gpu.row_neighbours_backward({some(s, 3 * m.hidden), lengths(s), reach, half(s)});
    });
    expect_reached("clear_padding", [&](Space& s) { gpu.clear_padding({both(s), lengths(s), both(s)}); });
    expect_reached("cut_columns", [&](Space& s) { gpu.cut_columns({some(s, 2 * m.hidden), half(s)}); });
    const auto picked = [&](Space& s) { return s.take_part({m.samples, 5, m.hidden}, bf16); };
    const auto picks = [&](Space& s) { return s.take({m.samples, 5}, i32); };
    expect_reached("pick_rows", [&](Space& s) { gpu.pick_rows({some(s, m.hidden), picks(s), picked(s)}); });
    expect_reached("put_rows", [&](Space& s) { gpu.put_rows({picked(s), picks(s), 0, half(s)}); });
  }
}

TEST_F(Addresses, OfNormsAndSumsOverRows) {
  for (const Model& m : models) {
    SCOPED_TRACE(m.name);
    const auto x = [&](Space& s) { return s.take(m.x(m.width), bf16); };
    const auto cols = [&](Space& s) { return s.take({m.width}, bf16); };
    const auto statistics = [&](Space& s) { return s.take({m.all_rows(), 2}, f32); };
    const SequencePart sequence{.samples = m.samples, .rows = m.rows, .first = 0, .whole = m.rows};
    expect_reached("norm", [&](Space& s) {
      gpu.norm({NormKind::layer, x(s), cols(s), cols(s), 1e-5, statistics(s), x(s)});
    });
    expect_reached("residual_norm", [&](Space& s) {
      gpu.residual_norm({x(s),
                         x(s),
                         cols(s),
                         {},
                         sequence,
                         x(s),
                         NormKind::layer,
                         cols(s),
                         cols(s),
                         1e-5,
                         statistics(s),
                         x(s)});
    });
    expect_reached("norm_backward_input", [&](Space& s) {
      gpu.norm_backward_input({NormKind::layer, x(s), x(s), cols(s), statistics(s), x(s), x(s)});
    });
    const auto parts = [&](Space& s) { return s.take({1, m.width}, f32); };
    expect_reached("norm_backward_parameters", [&](Space& s) {
      gpu.norm_backward_parameters({NormKind::layer, x(s), x(s), statistics(s), parts(s), parts(s)});
    });
    for (bool with_bias : {false, true})
      expect_reached("norm_backward", [&](Space& s) {
        gpu.norm_backward({NormKind::layer, x(s), x(s), cols(s), statistics(s), x(s), x(s), parts(s),
                           parts(s), with_bias ? parts(s) : Tensor{}});
      });
    expect_reached("bias_backward", [&](Space& s) {
      gpu.bias_backward({s.take(m.x(2 * m.hidden), bf16), s.take({1, 2 * m.hidden}, f32)});
    });
  }
}

TEST_F(Addresses, OfLogitsAndTheirGradients) {
  for (const Model& m : models) {
    SCOPED_TRACE(m.name);
    const std::int64_t rows = m.all_rows(), words = m.words;
    const auto logits = [&](Space& s) { return s.take({rows, words}, f32); };
    const auto each = [&](Space& s) { return s.take({rows}, f32); };
    expect_reached("row_maximum", [&](Space& s) { gpu.row_maximum({logits(s), words, each(s)}); });
    expect_reached("softmax_sums", [&](Space& s) {
      gpu.softmax_sums({logits(s), words, 0, tokens_of(s, rows, words), each(s), each(s), each(s), each(s)});
    });
    expect_reached("target_rank", [&](Space& s) {
      gpu.target_rank({logits(s), words, 0, tokens_of(s, rows, words), each(s), each(s)});
    });
    expect_reached("cross_entropy", [&](Space& s) {
      gpu.cross_entropy({tokens_of(s, rows, words), each(s), each(s), each(s), each(s), 0, words, each(s)});
    });
    for (DType dtype : {f32, bf16}) {
      expect_reached("cross_entropy_backward", [&](Space& s) {
        gpu.cross_entropy_backward({logits(s), words, 0, tokens_of(s, rows, words), each(s), each(s), 1, 0,
                                    words, s.take({rows, words}, dtype)});
      });
      expect_reached("softmax_cross_entropy", [&](Space& s) {
        gpu.softmax_cross_entropy({logits(s), words, tokens_of(s, rows, words), 1, 0, words,
                                   s.take_part({rows}, f32), s.take_part({3, rows}, f32), each(s),
                                   s.take({rows, words}, dtype)});
      });
    }
    expect_reached("embedding", [&](Space& s) {
      gpu.embedding(
          {tokens_of(s, rows, words), s.take({words, m.width}, bf16), 0, s.take({rows, m.width}, bf16)});
    });
    constexpr std::int64_t few = 300;  // all blocks run, because each sorts what others have sorted
    expect_reached(
        "embedding_backward",
        [&](Space& s) {
          gpu.embedding_backward({.tokens = tokens_of(s, few, words),
                                  .dy = s.take({few, m.width}, bf16),
                                  .first_row = 0,
                                  .dtable = s.take({words, m.width}, f32)});
        },
        0);
  }
}

TEST_F(Addresses, OfPicturesAndBatchNorms) {
  constexpr std::int64_t samples = 16384, channels = 256;  // 13 thousand million elements
  const PixelWindow w{56, 56, 3, 1, 1};
  const std::int64_t rows = samples * w.pixels(), chunks = pixel_chunks(rows);
  const auto x = [&](Space& s) { return s.take({samples, w.pixels(), channels}, bf16); };
  const auto beside = [&](Space& s) { return s.take_part({samples, w.windows(), 9 * channels}, bf16); };
  const auto taps = [&](Space& s) { return s.take_part({9, channels}, bf16); };
  const auto chosen = [&](Space& s) { return s.take({samples, w.windows(), channels}, DType::u8); };
  const auto pooled = [&](Space& s) { return s.take({samples, channels}, bf16); };
  expect_reached("pixel_neighbours", [&](Space& s) { gpu.pixel_neighbours({x(s), w, beside(s)}); });
  expect_reached("pixel_neighbours_backward", [&](Space& s) {
    gpu.pixel_neighbours_backward({beside(s), w, x(s)});
  });
  expect_reached("pixel_depthwise", [&](Space& s) { gpu.pixel_depthwise({x(s), taps(s), w, x(s)}); });
  expect_reached("pixel_depthwise_backward_input", [&](Space& s) {
    gpu.pixel_depthwise_backward_input({x(s), taps(s), w, x(s)});
  });
  expect_reached("pixel_depthwise_backward_weight", [&](Space& s) {
    gpu.pixel_depthwise_backward_weight(
        {s.take_part({samples, w.windows(), channels}, bf16), x(s), w, s.take({chunks, 9, channels}, f32)});
  });
  expect_reached("pool", [&](Space& s) { gpu.pool({PoolKind::maximum, x(s), w, x(s), chosen(s)}); });
  expect_reached("pool, average", [&](Space& s) { gpu.pool({PoolKind::average, x(s), w, x(s)}); });
  expect_reached("pool_backward", [&](Space& s) {
    gpu.pool_backward({PoolKind::maximum, x(s), chosen(s), w, x(s)});
  });
  expect_reached("global_pool", [&](Space& s) { gpu.global_pool({x(s), pooled(s)}); });
  expect_reached("global_pool_backward", [&](Space& s) { gpu.global_pool_backward({pooled(s), x(s)}); });
  const auto statistics = [&](Space& s) { return s.take_part({3, channels}, f32); };
  const auto cols = [&](Space& s) { return s.take({channels}, bf16); };
  const auto parts = [&](Space& s) { return s.take({chunks, 2, channels}, f32); };
  expect_reached("batch_moments", [&](Space& s) { gpu.batch_moments({x(s), parts(s)}); });
  expect_reached("batch_norm", [&](Space& s) {
    gpu.batch_norm({x(s), statistics(s), cols(s), cols(s), true, x(s)});
  });
  expect_reached("batch_norm_backward_sums", [&](Space& s) {
    gpu.batch_norm_backward_sums({x(s), x(s), statistics(s), cols(s), cols(s), true, parts(s)});
  });
  expect_reached("batch_norm_backward_input", [&](Space& s) {
    gpu.batch_norm_backward_input(
        {x(s), x(s), statistics(s), cols(s), cols(s), s.take({2, channels}, f32), true, x(s), x(s)});
  });
}

TEST_F(Addresses, OfGradientsAndUpdates) {
  for (const Model& m : models) {
    SCOPED_TRACE(m.name);
    const std::int64_t count = m.parameters;
    const auto wide = [&](Space& s) { return s.take({count}, f32); };
    const auto narrow = [&](Space& s) { return s.take({count}, bf16); };
    const auto decision = [](Space& s) { return s.take_part({Decision::places}, DType::f64); };
    expect_reached("add_tree", [&](Space& s) {
      gpu.add_tree({{wide(s), wide(s), wide(s)}, {0, 1, 1}, wide(s)});
    });
    expect_reached("running_mean", [&](Space& s) {
      gpu.running_mean({0.1, 1, decision(s), wide(s), wide(s), narrow(s)});
    });
    expect_reached("maximum", [&](Space& s) { gpu.maximum({wide(s), wide(s), wide(s)}); });
    expect_reached("fill", [&](Space& s) { gpu.fill({wide(s), 0}); });
    expect_reached("convert", [&](Space& s) { gpu.convert({wide(s), narrow(s)}); });
    expect_reached("accumulate", [&](Space& s) { gpu.accumulate({narrow(s), wide(s)}); });
    expect_reached("sum_squares", [&](Space& s) {
      gpu.sum_squares({wide(s), s.take({statistics_chunks(count)}, DType::f64)});
    });
    expect_reached("adamw", [&](Space& s) {
      gpu.adamw({{}, decision(s), wide(s), wide(s), wide(s), wide(s), narrow(s)});
    });
    const std::vector<FlatSpan> halves{{0, count / 2}, {count / 2, count - count / 2}};
    const std::vector<SquaresSpan> squares{{halves[0], 0}, {halves[1], statistics_chunks(count / 2)}};
    const std::vector<UpdateSpan> updates{{halves[0], 0}, {halves[1], 0.1f}};
    expect_reached("fill_of_spans", [&](Space& s) { gpu.fill_of_spans({wide(s), 0, halves}); });
    expect_reached("sum_squares_of_spans", [&](Space& s) {
      gpu.sum_squares_of_spans(
          {wide(s), s.take({squares[1].first_sum + statistics_chunks(halves[1].count)}, DType::f64),
           squares});
    });
    expect_reached("adamw_of_spans", [&](Space& s) {
      gpu.adamw_of_spans({{{}, decision(s), wide(s), wide(s), wide(s), wide(s), narrow(s)}, updates});
    });
    expect_reached("sgd_of_spans", [&](Space& s) {
      gpu.sgd_of_spans({{{}, decision(s), wide(s), wide(s), wide(s), narrow(s)}, updates});
    });
    expect_reached("sgd", [&](Space& s) {
      gpu.sgd({{}, decision(s), wide(s), wide(s), wide(s), narrow(s)});
    });
    expect_reached("add_as_integers", [&](Space& s) {
      gpu.add_as_integers({wide(s), s.take({count}, DType::i64), s.take_part({1}, DType::i64)});
    });
    expect_reached("from_integers", [&](Space& s) {
      gpu.from_integers({s.take({count}, DType::i64), s.take({1}, DType::i64), wide(s)});
    });
  }
}

TEST_F(Addresses, AnIndexOf32BitsIsNoticed) {
  const std::int64_t count = (std::int64_t{1} << 32) + 1000;
  for (bool mistake : {false, true}) {
    Space space;
    if (!space.there()) GTEST_SKIP() << "this system reserves no address space beyond its memory";
    const Tensor y = space.take({count}, f32);
    const on_host::Within within(space.operands());
    on_host::run_ends(2);
    on_a_stream([&](cudaStream_t stream) {
      cuda::launch(stream, cuda::Grid{cuda::blocks_for(count, 256), 256}, planted::fill_far, y.as<float>(),
                   count, mistake);
    });
    on_host::run_ends(0);
#ifndef MINDPIPE_UNWATCHED
    EXPECT_EQ(space.left_out().empty(), !mistake);
#endif
  }
}

}  // namespace
