#include "layers/convolution.h"

#include "adapters.h"
#include "gradient_check.h"
#include "layers/gated_unit.h"
#include "layers/mlp.h"
#include "layers/normed_mlp.h"
#include "layers/parallel_block.h"
#include "layers/two_sided.h"

namespace mindpipe::testing {
namespace {

constexpr std::int64_t stream = 16;

/// Samples of lengths 5, 3, 1 and 0.
Setting with_lengths() {
  Setting setting;
  setting.samples = 4;
  setting.sources = true;
  return setting;
}

enum class Of { standard, separable, lightweight };

std::unique_ptr<Convolution> convolution(Subject& s, Of kind, const ConvolutionSpec& spec,
                                         std::int64_t shared = 4) {
  Unit& unit = s.unit("unit");
  if (kind == Of::standard)
    return std::make_unique<StandardConvolution>(s.context(), unit, "convolution", spec);
  if (kind == Of::separable)
    return std::make_unique<SeparableConvolution>(s.context(), unit, "convolution", spec);
  return std::make_unique<LightweightConvolution>(s.context(), unit, "convolution", spec, shared);
}

Subject::Build branch(Of kind, const ConvolutionSpec& spec, std::int64_t shared = 4) {
  return [=](Subject& s) {
    s.add(std::make_unique<BranchLayer>(
        s.context(),
        std::make_unique<ConvolutionBranch>(s.context(), convolution(s, kind, spec, shared), spec.lengths)));
  };
}
ConvolutionSpec spec_of(int taps, bool causal, Activation activation = Activation::none) {
  return {stream,
          stream,
          {taps, causal},
          causal ? std::string_view{} : std::string_view{field::source_lengths},
          activation};
}

TEST(ConvolutionGradients, OfEveryKindAndReach) {
  for (Of kind : {Of::standard, Of::separable, Of::lightweight})
    for (int taps : {1, 3, 7, 11, 15})
      for (bool causal : {false, true}) {
        SCOPED_TRACE(fmt::format("kind {}, {} taps, causal {}", static_cast<int>(kind), taps, causal));
        Setting setting = with_lengths();
        if (kind == Of::lightweight && taps == 1)  // a softmax of one
          setting.without_gradient = {"unit.convolution.taps.weight"};
        check_gradients(setting, branch(kind, spec_of(taps, causal)));
      }
}

TEST(ConvolutionGradients, GoThroughAnActivation) {
  for (Of kind : {Of::standard, Of::separable, Of::lightweight})
    check_gradients(with_lengths(), branch(kind, spec_of(3, false, Activation::silu)));
  Setting kinks = Setting::for_relu();
  kinks.sources = true;
  check_gradients(kinks, branch(Of::separable, spec_of(3, false, Activation::relu)));
}

TEST(ConvolutionGradients, OfTapsThatNoneSomeOrAllChannelsShare) {
  for (std::int64_t shared : {1, 16}) check_gradients({}, branch(Of::lightweight, spec_of(7, true), shared));
}

TEST(ConvolutionGradients, AreTheSameWhereSamplesComeInSeveralRuns) {
  Setting setting;
  setting.samples = 3;
  setting.rows = 300;
  check_gradients(setting, branch(Of::standard, spec_of(3, true)));
}

TEST(ConvolutionGradients, DifferInRoundingOnlyBetweenShards) {
  for (Of kind : {Of::standard, Of::separable, Of::lightweight})
    check_rounding(with_lengths(), branch(kind, spec_of(3, false, Activation::silu)));
}

TEST(Convolutions, RefuseWhatTheyCannotBe) {
  const auto refusal = [](Of kind, const ConvolutionSpec& spec, std::int64_t shared = 4) -> std::string {
    try {
      Subject(with_lengths(), branch(kind, spec, shared));
    } catch (const Error& error) {
      EXPECT_EQ(error.code, Exit::bad_configuration);
      return error.what();
    }
    return "built";
  };
  for (Of kind : {Of::standard, Of::separable, Of::lightweight})
    for (int taps : {0, 2, 17})
      EXPECT_EQ(
          refusal(kind, spec_of(taps, true)),
          fmt::format("convolution: a convolution over {} rows (an odd number up to 15 has a row in its "
                      "middle)",
                      taps));
  EXPECT_EQ(refusal(Of::lightweight, spec_of(3, true), 5),
            "convolution: 16 channels to 16, whose weights are for 5 channels each (as many come out, and "
            "their number is a multiple)");
}

TEST(GatedUnitGradients, AreThoseOfItsFormula) {
  const Subject::Build unit = [](Subject& s) {
    s.add(std::make_unique<BranchLayer>(
        s.context(), std::make_unique<GatedUnit>(s.context(), s.unit("unit"), "glu", stream)));
  };
  check_gradients({}, unit);
  check_rounding({}, unit);
}

TEST(GatedUnit, IsAValueTimesTheSigmoidOfAGate) {
  Subject subject({}, [](Subject& s) {
    s.add(std::make_unique<BranchLayer>(
        s.context(), std::make_unique<GatedUnit>(s.context(), s.unit("unit"), "glu", stream)));
  });
  const Setting setting;
  Whole& v = subject.values;
  const auto& x = v.at("input.activation");
  const std::vector<double> weights = normals("loss.activation", static_cast<std::int64_t>(x.size()), 1);
  double loss = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t row = i / stream * stream, out = i % stream;
    double value = v.at("unit.glu.value.bias")[out], gate = v.at("unit.glu.gate.bias")[out];
    for (std::size_t j = 0; j < stream; ++j) {
      value += v.at("unit.glu.value.weight")[out * stream + j] * x[row + j];
      gate += v.at("unit.glu.gate.weight")[out * stream + j] * x[row + j];
    }
    loss += weights[i] * value / (1 + std::exp(-gate));
  }
  EXPECT_NEAR(subject.loss(), loss, 1e-9);
}

TEST(NormedMlpGradients, GoThroughTheNormAndWhatIsDropped) {
  const auto mlp = [](double dropout) -> Subject::Build {
    return [=](Subject& s) {
      s.add(std::make_unique<BranchLayer>(
          s.context(), std::make_unique<NormedMlp>(s.context(), s.unit("unit"), "mlp", "mlp",
                                                   NormedMlpSpec{stream, 24, Activation::silu, dropout})));
    };
  };
  check_gradients({}, mlp(0));
  check_gradients({}, mlp(0.3));
  check_rounding({}, mlp(0.3));
}

TEST(MlpGradients, GoThroughWhatIsDroppedInside) {
  for (bool gated : {false, true})
    check_gradients({}, [=](Subject& s) {
      MlpSpec spec{stream, 24, Activation::silu, gated, true};
      spec.dropout = 0.3;
      spec.purpose = purpose_of("inner");
      s.add(std::make_unique<BranchLayer>(s.context(),
                                          std::make_unique<Mlp>(s.context(), s.unit("unit"), "mlp", spec)));
    });
}

/// Both sides with an activation that bends, the right one narrower.
Subject::Build two_sides(bool padded, std::int64_t closing_width, double dropout) {
  return [=](Subject& s) {
    Unit& unit = s.unit("unit");
    const LayerContext& c = s.context();
    const std::string_view lengths = padded ? std::string_view{field::source_lengths} : std::string_view{};
    TwoSidedSpec spec{
        .left = std::make_unique<Dense>(c, unit, "left", stream, 32, Activation::silu),
        .right = std::make_unique<StandardConvolution>(
            c, unit, "right", ConvolutionSpec{stream, 8, {3, !padded}, lengths, Activation::gelu}),
        .left_width = 32,
        .right_width = 8,
        .norm = Norm(c, unit, "norm", NormKind::layer, 32, 1e-6, true, Form::whole),
        .closing = std::make_unique<SeparableConvolution>(
            c, unit, "closing", ConvolutionSpec{32, closing_width, {5, !padded}, lengths}),
        .closing_width = closing_width,
        .width = stream,
        .lengths = lengths,
        .dropout = dropout};
    s.add(
        std::make_unique<BranchLayer>(c, std::make_unique<TwoSidedBranch>(c, "two_sided", std::move(spec))));
  };
}

TEST(TwoSidedGradients, ComeFromBothSides) {
  check_gradients({}, two_sides(false, stream, 0));
  check_gradients(with_lengths(), two_sides(true, 8, 0));
  check_gradients(with_lengths(), two_sides(true, 8, 0.2));
  check_rounding(with_lengths(), two_sides(true, 8, 0.2));
}

TEST(TwoSided, ReadsNoPadding) {
  Subject subject(with_lengths(), two_sides(true, 8, 0));
  const double loss = subject.loss();
  std::vector<double>& x = subject.values.at("input.activation");
  const auto rows = static_cast<std::size_t>(subject.setting().rows);
  for (std::size_t row = rows + 3; row < 2 * rows; ++row)
    for (std::size_t j = 0; j < stream; ++j) x[row * stream + j] = 1000;  // sample 1 has three rows
  EXPECT_EQ(subject.loss(), loss);
  x[(rows + 2) * stream] = 1000;
  EXPECT_NE(subject.loss(), loss);
}

TEST(ParallelBlockGradients, AreSumsOfBothBranches) {
  for (double dropout : {0.0, 0.2}) {
    Setting setting;
    setting.memory = true;
    setting.memory_rows = 6;
    check_gradients(setting, [=](Subject& s) {
      Unit& unit = s.unit("unit");
      const LayerContext& c = s.context();
      AttentionSpec self = four_heads();
      AttentionSpec cross = four_heads();
      s.add(std::make_unique<ParallelBlock>(
          c, Norm(c, unit, "norm", NormKind::layer, stream, 1e-6, true),
          std::make_unique<SelfAttention>(c, unit, "attention", "attention", self),
          std::make_unique<CrossAttention>(c, unit, "cross", "cross", cross), dropout, "parallel"));
    });
  }
}

}  // namespace
}  // namespace mindpipe::testing
