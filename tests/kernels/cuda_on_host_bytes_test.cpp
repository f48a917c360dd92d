// thorough
#include <functional>
#include <numeric>

#include "kernels/addresses.h"

/// The bytes that kernels read and write, as the watch of tests/kernels/cuda_on_host counts them, are those
/// of the ledger in kernels/cuda/README.md.
using namespace mindpipe;
using namespace mindpipe::testing;

namespace {

/// Operands of which each access is counted. `small`: vectors that stay in the cache, which the ledger leaves
/// out or counts once.
class Operands {
 public:
  Tensor large(const Shape& shape, DType dtype) { return take(shape, dtype, false); }
  Tensor small(const Shape& shape, DType dtype) { return take(shape, dtype, true); }
  /// Tokens 7, 14, 21 ... of a vocabulary, which differ from each other.
  Tensor tokens(std::int64_t count, std::int64_t words) {
    const Tensor made = small({count}, DType::i32);
    for (std::int64_t i = 0; i < count; ++i)
      made.as<std::int32_t>()[i] = static_cast<std::int32_t>((i + 1) * 7 % words);
    return made;
  }

  Space space;
  std::vector<bool> is_small;

 private:
  Tensor take(const Shape& shape, DType dtype, bool small) {
    const Tensor made = space.take(shape, dtype);
    on_host::Extent& extent = space.operands().back();
    extent.reads.resize(extent.bytes);
    extent.writes.resize(extent.bytes);
    is_small.push_back(small);
    return made;
  }
};

/// What an operation moves: of large operands and of working memory, and how large its small operands are.
struct Moved {
  double read = 0, written = 0, small = 0;
  double repeated = 0;  ///< bytes of large operands that are read, or written, more than once
  int most = 0;         ///< how often that one is which is so most often
};

/// What stands in no ledger: bytes that are read besides, and what is repeated.
struct Besides {
  double read = 0, repeated = 0;
  int most = 1;
};

class Bytes : public Addresses {
 protected:
  template <class Operation, class Given>
  Moved count(const Operation& operation, const Given& given, Operands& operands) {
    const on_host::Complaints complaints;
    const on_host::Within within(operands.space.operands());
    std::invoke(operation, gpu, given);
    gpu.synchronize();
    EXPECT_THAT(complaints.all, ::testing::IsEmpty());
    Moved moved{static_cast<double>(within.read_beside), static_cast<double>(within.written_beside)};
    for (std::size_t i = 0; i < within.operands.size(); ++i) {
      const on_host::Extent& one = within.operands[i];
      if (operands.is_small[i]) {
        moved.small += static_cast<double>(one.bytes);
        continue;
      }
      moved.read += std::accumulate(one.reads.begin(), one.reads.end(), 0.0);
      moved.written += std::accumulate(one.writes.begin(), one.writes.end(), 0.0);
      for (const auto* times : {&one.reads, &one.writes})
        for (const int n : *times) {
          moved.repeated += n > 1 ? 1 : 0;
          moved.most = std::max(moved.most, n);
        }
    }
    return moved;
  }
  /// Kernels move what the ledger says, which may count small operands once, and `besides`.
  template <class Operation, class Given>
  Moved expect_as_in_ledger(const char* name, const Operation& operation, const Given& given,
                            Operands& operands, const Besides& besides = {}) {
    SCOPED_TRACE(name);
    Moved moved = count(operation, given, operands);
    PricingBackend::Asked asked;
    paper->on_operation([&](const PricingBackend::Asked& one) { asked = one; });
    std::invoke(operation, *paper, given);
#ifndef MINDPIPE_UNWATCHED
    EXPECT_LE(moved.read, asked.read + besides.read);
    EXPECT_GE(moved.read + moved.small, asked.read + besides.read);
    EXPECT_LE(moved.written, asked.written);
    EXPECT_GE(moved.written + moved.small, asked.written);
    EXPECT_EQ(moved.most, besides.most);
    EXPECT_EQ(moved.repeated, besides.repeated);
#endif
    return moved;
  }
  /// Counts of accesses begin anew, for another operation on the same operands.
  static void count_anew(Operands& operands) {
    for (on_host::Extent& one : operands.space.operands()) {
      std::fill(one.reads.begin(), one.reads.end(), std::uint8_t{0});
      std::fill(one.writes.begin(), one.writes.end(), std::uint8_t{0});
    }
  }

  Memory on_paper{Memory::Kind::counted};
  std::unique_ptr<PricingBackend> paper = make_pricing_backend(on_paper, describe_device("h100"), true);
};

TEST_F(Bytes, OfTheClassifierAreSixALogitOrTenOfALongRow) {
  for (const Model& m : models) {
    SCOPED_TRACE(m.name);
    constexpr std::int64_t rows = 3;
    Operands o;
    const SoftmaxCrossEntropyOperands given{o.large({rows, m.words}, f32),
                                            m.words,
                                            o.tokens(rows, m.words),
                                            1,
                                            0,
                                            m.words,
                                            o.small({rows}, f32),
                                            o.small({3, rows}, f32),
                                            o.small({rows}, f32),
                                            o.large({rows, m.words}, bf16)};
    const bool is_long = m.words > 57'856;
    const double logits = static_cast<double>(rows * m.words), of_targets = rows * sizeof(float);
    const Moved moved = expect_as_in_ledger(
        "softmax_cross_entropy", &Backend::softmax_cross_entropy, given, o,
        {of_targets, is_long ? 4 * logits : of_targets, is_long ? 3 : 2});  // a target's logit once more
#ifndef MINDPIPE_UNWATCHED
    EXPECT_EQ(moved.read + moved.written, (is_long ? 10 : 6) * logits + of_targets);
#endif
  }
}

TEST_F(Bytes, OfLogitsThatAreCutOverShards) {
  constexpr std::int64_t rows = 3, words = 50304;
  constexpr double of_targets = rows * sizeof(float);  // whose logits are read once more
  Operands o;
  const Tensor logits = o.large({rows, words}, f32), tokens = o.tokens(rows, words);
  const auto each = [&] { return o.small({rows}, f32); };
  expect_as_in_ledger("row_maximum", &Backend::row_maximum, RowMaximumOperands{logits, words, each()}, o);
  count_anew(o);
  expect_as_in_ledger("softmax_sums", &Backend::softmax_sums,
                      SoftmaxSumsOperands{logits, words, 0, tokens, each(), each(), each(), each()}, o,
                      {of_targets, of_targets, 2});
  count_anew(o);
  expect_as_in_ledger("cross_entropy_backward", &Backend::cross_entropy_backward,
                      CrossEntropyBackwardOperands{logits, words, 0, tokens, each(), each(), 1, 0, words,
                                                   o.large({rows, words}, bf16)},
                      o);
}

TEST_F(Bytes, OfNormsInWhoseBackwardDyAndXAreReadOnce) {
  struct Row {
    std::int64_t cols;
    DType dtype;
  };
  for (const Row& r : {Row{768, bf16}, Row{1600, bf16}, Row{4096, bf16}, Row{8192, bf16}, Row{4096, f32}}) {
    SCOPED_TRACE(fmt::format("{} columns of {}", r.cols, name_of(r.dtype)));
    const Shape shape{2, 35, r.cols};
    const auto sums = [&](Operands& o) { return o.small({1, r.cols}, f32); };
    const auto gain = [&](Operands& o) { return o.small({r.cols}, r.dtype); };
    const auto statistics = [&](Operands& o) { return o.small({70, 2}, f32); };
    const auto x = [&](Operands& o) { return o.large(shape, r.dtype); };
    for (bool with_bias : {false, true}) {
      Operands o;
      const NormBackwardOperands both{NormKind::layer,
                                      x(o),
                                      x(o),
                                      gain(o),
                                      statistics(o),
                                      x(o),
                                      x(o),
                                      sums(o),
                                      sums(o),
                                      with_bias ? sums(o) : Tensor{}};
      expect_as_in_ledger("norm_backward", &Backend::norm_backward, both, o);
    }
    Operands o, p, q, s, b;
    expect_as_in_ledger("norm", &Backend::norm,
                        NormOperands{NormKind::layer, x(o), gain(o), gain(o), 1e-5, statistics(o), x(o)}, o);
    const SequencePart sequence{.samples = 2, .rows = 35, .first = 0, .whole = 35};
    expect_as_in_ledger("residual_norm", &Backend::residual_norm,
                        ResidualNormOperands{x(p),
                                             x(p),
                                             gain(p),
                                             {},
                                             sequence,
                                             x(p),
                                             NormKind::layer,
                                             gain(p),
                                             gain(p),
                                             1e-5,
                                             statistics(p),
                                             x(p)},
                        p);
    expect_as_in_ledger(
        "norm_backward_input", &Backend::norm_backward_input,
        NormBackwardInputOperands{NormKind::layer, x(q), x(q), gain(q), statistics(q), x(q), x(q)}, q);
    expect_as_in_ledger(
        "norm_backward_parameters", &Backend::norm_backward_parameters,
        NormBackwardParametersOperands{NormKind::layer, x(s), x(s), statistics(s), sums(s), sums(s)}, s);
    expect_as_in_ledger("bias_backward", &Backend::bias_backward, BiasBackwardOperands{x(b), sums(b)}, b);
  }
}

TEST_F(Bytes, OfRowsThatNoBlockHoldsAreThoseOfOneOperationAfterTheOther) {
  constexpr std::int64_t cols = 8200;
  Operands o;
  const auto x = [&] { return o.large({2, 5, cols}, bf16); };
  const auto sums = [&] { return o.small({1, cols}, f32); };
  const NormBackwardOperands given{
      NormKind::layer, x(),    x(),   o.small({cols}, bf16), o.small({10, 2}, f32), x(), x(),
      sums(),          sums(), sums()};
  const auto dy_x_and_residual = static_cast<double>(3 * given.x.bytes());
  expect_as_in_ledger("norm_backward", &Backend::norm_backward, given, o, {0, dy_x_and_residual, 2});
}

TEST_F(Bytes, OfElementsAndTokens) {
  for (const Model& m : models) {
    SCOPED_TRACE(m.name);
    constexpr std::int64_t samples = 2, rows = 35;
    const auto x = [&](Operands& o) { return o.large({samples, rows, m.width}, bf16); };
    const auto hidden = [&](Operands& o) { return o.large({samples, rows, m.hidden}, bf16); };
    const auto both = [&](Operands& o) { return o.large({samples, rows, 2 * m.hidden}, bf16); };
    constexpr std::int64_t words = 1000;
    const SequencePart sequence{.samples = samples, .rows = rows, .first = 0, .whole = rows};
    const auto expect = [&](const char* name, const auto& operation, const auto& make) {
      Operands o;
      expect_as_in_ledger(name, operation, make(o), o);
    };
    expect("add", &Backend::add, [&](Operands& o) { return AddOperands{x(o), x(o), x(o)}; });
    expect("accumulate", &Backend::accumulate, [&](Operands& o) {
      return AccumulateOperands{x(o), o.large({samples, rows, m.width}, f32)};
    });
    expect("add_tree", &Backend::add_tree, [&](Operands& o) {
      return AddTreeOperands{{x(o), x(o), x(o)}, {0, 1, 1}, x(o)};
    });
    expect("convert", &Backend::convert, [&](Operands& o) {
      return ConvertOperands{x(o), o.large({samples, rows, m.width}, f32)};
    });
    expect("scale", &Backend::scale, [&](Operands& o) { return ScaleOperands{x(o), 2, x(o)}; });
    expect("residual", &Backend::residual, [&](Operands& o) {
      return ResidualOperands{x(o), x(o), o.small({m.width}, bf16), {}, sequence, x(o)};
    });
    expect("activation", &Backend::activation, [&](Operands& o) {
      return ActivationOperands{hidden(o), Activation::gelu, hidden(o)};
    });
    expect("activation_backward", &Backend::activation_backward, [&](Operands& o) {
      return ActivationBackwardOperands{hidden(o), hidden(o), Activation::gelu, hidden(o)};
    });
    expect("swiglu", &Backend::swiglu, [&](Operands& o) { return SwigluOperands{both(o), hidden(o)}; });
    expect("swiglu_backward", &Backend::swiglu_backward, [&](Operands& o) {
      return SwigluBackwardOperands{hidden(o), both(o), both(o)};
    });
    const std::vector<double> frequencies = rotary_frequencies(1e4, m.head_width);
    for (const bool all : {true, false})
      expect("rotary", &Backend::rotary, [&](Operands& o) {
        const Tensor heads = o.large({samples, rows, m.heads + 2 * m.key_heads, m.head_width}, bf16);
        const auto turned = static_cast<int>(all ? heads.shape[2] : m.heads + m.key_heads);
        return RotaryOperands{{heads, 0, turned}, frequencies};
      });
    expect("add_positions", &Backend::add_positions, [&](Operands& o) {
      return AddPositionsOperands{x(o), o.small({rows, m.width}, bf16), sequence, 0, x(o)};
    });
    expect("positions_backward", &Backend::positions_backward, [&](Operands& o) {
      return PositionsBackwardOperands{x(o), sequence, 0, o.large({rows, m.width}, f32)};
    });
    expect("embedding", &Backend::embedding, [&](Operands& o) {
      return EmbeddingOperands{o.tokens(samples * rows, words), o.large({words, m.width}, bf16), 0, x(o)};
    });
  }
}

/// Lists of sorted tokens, which all threads of a warp read, come from the cache.
TEST_F(Bytes, OfATablesGradientAreOnceThoseOfRowsThatOccur) {
  constexpr std::int64_t rows = 20, words = 1000, width = 768;
  Operands o;
  const Tensor tokens = o.tokens(rows, words), dy = o.large({rows, width}, bf16),
               dtable = o.large({words, width}, f32);
  tokens.as<std::int32_t>()[1] = tokens.as<std::int32_t>()[0];
  count(&Backend::embedding_backward, EmbeddingBackwardOperands{.tokens = tokens, .dy = dy, .dtable = dtable},
        o);
#ifndef MINDPIPE_UNWATCHED
  const on_host::Extent &of_dy = o.space.operands()[1], &of_table = o.space.operands()[2];
  // A row of fewer than eight tokens asks for its first one instead of others, which then lies in the cache.
  EXPECT_THAT(of_dy.reads, ::testing::Each(::testing::AllOf(::testing::Ge(1), ::testing::Le(8))));
  const auto row_bytes = static_cast<double>(width * sizeof(float));
  for (const auto* times : {&of_table.reads, &of_table.writes}) {
    EXPECT_EQ(std::accumulate(times->begin(), times->end(), 0.0), (rows - 1) * row_bytes);
    EXPECT_EQ(*std::max_element(times->begin(), times->end()), 1);
  }
#endif
}

TEST_F(Bytes, OfUpdatesAndSumsOverUnits) {
  constexpr std::int64_t count = 100'000;
  const std::vector<UpdateSpan> spans = {{{0, 60'000}, 0.1f}, {{60'000, 40'000}, 0}};
  const auto wide = [](Operands& o) { return o.large({count}, f32); };
  const auto value = [](Operands& o) { return o.large({count}, bf16); };
  const auto decision = [](Operands& o) { return o.small({Decision::places}, DType::f64); };
  Operands a, f, q, g;
  expect_as_in_ledger(
      "adamw_of_spans", &Backend::adamw_of_spans,
      AdamWOfSpansOperands{{{}, decision(a), wide(a), wide(a), wide(a), wide(a), value(a)}, spans}, a);
  expect_as_in_ledger(
      "sgd_of_spans", &Backend::sgd_of_spans,
      SgdOfSpansOperands{{{.momentum = 0.9f}, decision(g), wide(g), wide(g), wide(g), value(g)}, spans}, g);
  expect_as_in_ledger("fill_of_spans", &Backend::fill_of_spans,
                      FillOfSpansOperands{wide(f), 0, {{0, 60'000}, {60'000, 40'000}}}, f);
  expect_as_in_ledger(
      "sum_squares_of_spans", &Backend::sum_squares_of_spans,
      SumSquaresOfSpansOperands{wide(q), q.small({7}, DType::f64), {{{0, 60'000}, 0}, {{60'000, 40'000}, 4}}},
      q);
}

}  // namespace
