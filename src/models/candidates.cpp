#include "models/candidates.h"

#include "layers/convolution.h"
#include "layers/gated_unit.h"
#include "layers/identity.h"
#include "layers/mlp.h"
#include "layers/normed_mlp.h"
#include "models/append_candidates.h"

namespace mindpipe {

static_assert(Candidate::most_taps == Reach::most);
namespace {

std::string_view lengths_seen(const Candidates::Use& use) {
  return use.encodes ? field::source_lengths : std::string_view{};
}

/// Between the products of an MLP, and behind convolutions whose weights are no softmax.
Activation usual_activation(const Candidate& candidate) {
  if (candidate.kind == CandidateKind::mlp) return Activation::gelu;
  return candidate.kind == CandidateKind::light ? Activation::none : Activation::relu;
}

}  // namespace

std::unique_ptr<Layer> Candidates::make(int block, int number, Unit* unit) const {
  const Candidate& candidate = settings_.space.candidates(block)[number];
  if (unit == nullptr) return std::make_unique<Identity>(context_);
  const Use use{settings_.space.encodes(block), settings_.width, settings_.width,
                usual_activation(candidate)};
  const Norm norm(context_, *unit, "norm", NormKind::layer, settings_.width, settings_.norm_epsilon, true);
  auto branch = this->branch(candidate, use, *unit);
  const Param bias = leaves_bias(candidate) ? residual_bias(*unit, "mlp.output", settings_.width) : Param{};
  return std::make_unique<ResidualBlock>(context_, norm, std::move(branch), bias, settings_.dropout,
                                         unit->name());
}

void Candidates::append(Model& model, int block, int number) const {
  append_candidate(model, settings_.space, block, number,
                   [this](int of, int candidate, Unit* unit) { return make(of, candidate, unit); });
}

void Candidates::append_choice(Model& model, int block) const {
  mindpipe::append_choice(model, settings_.space, block,
                          [this](int of, int candidate, Unit* unit) { return make(of, candidate, unit); });
}

std::unique_ptr<Branch> Candidates::branch(const Candidate& candidate, const Use& use, Unit& unit) const {
  switch (candidate.kind) {
    case CandidateKind::convolution:
    case CandidateKind::separable:
    case CandidateKind::light:
      return convolution(candidate, use, unit);
    case CandidateKind::attention: {
      AttentionSpec spec = attention(candidate.heads(), use.inputs);
      spec.causal = !use.encodes;
      spec.cache_rows = settings_.context;
      spec.key_lengths = lengths_seen(use);
      return std::make_unique<SelfAttention>(context_, unit, "attention", unit.name(), spec);
    }
    case CandidateKind::cross: {
      AttentionSpec spec = attention(candidate.heads(), use.inputs);
      spec.causal = false;
      spec.key_lengths = field::source_lengths;
      return std::make_unique<CrossAttention>(context_, unit, "cross", unit.name(), spec);
    }
    case CandidateKind::gated:
      return std::make_unique<GatedUnit>(context_, unit, "glu", use.inputs);
    case CandidateKind::mlp:
    case CandidateKind::normed_mlp:
      return mlp(candidate, use, unit);
    case CandidateKind::dilated:
    case CandidateKind::maximum:
    case CandidateKind::average:
    case CandidateKind::identity:
    case CandidateKind::none:
    case CandidateKind::add:
    case CandidateKind::multiply:
    case CandidateKind::concat:
      break;
  }
  fail(Exit::internal, "{} has no branch", candidate.word());
}

std::unique_ptr<Branch> Candidates::convolution(const Candidate& candidate, const Use& use,
                                                Unit& unit) const {
  const ConvolutionSpec spec{
      use.inputs, use.outputs, {candidate.taps(), !use.encodes}, lengths_seen(use), use.activation};
  std::unique_ptr<Convolution> made;
  if (candidate.kind == CandidateKind::light)
    made = std::make_unique<LightweightConvolution>(context_, unit, "light", spec, candidate.shared());
  else if (candidate.kind == CandidateKind::separable)
    made = std::make_unique<SeparableConvolution>(context_, unit, "separable", spec);
  else if (candidate.taps() == 1)
    made = std::make_unique<Dense>(context_, unit, "conv", use.inputs, use.outputs, spec.activation);
  else made = std::make_unique<StandardConvolution>(context_, unit, "conv", spec);
  const std::int64_t earlier = use.encodes ? 0 : candidate.taps() - 1;
  return std::make_unique<ConvolutionBranch>(context_, std::move(made), lengths_seen(use),
                                             Shape{earlier, use.inputs});
}

std::unique_ptr<Branch> Candidates::mlp(const Candidate& candidate, const Use& use, Unit& unit) const {
  const std::int64_t inner = candidate.times() * use.inputs;
  if (candidate.kind == CandidateKind::normed_mlp)
    return std::make_unique<NormedMlp>(
        context_, unit, "mlp", unit.name(),
        NormedMlpSpec{use.inputs, inner, use.activation, use.inner_dropout, settings_.norm_epsilon});
  const double deviation = even_deviation(use.inputs, inner);
  return std::make_unique<Mlp>(context_, unit, "mlp",
                               MlpSpec{.width = use.inputs,
                                       .inner = inner,
                                       .activation = use.activation,
                                       .bias = true,
                                       .deviation = deviation,
                                       .output_deviation = deviation,
                                       .dropout = use.inner_dropout,
                                       .purpose = purpose_of(unit.name() + ".inner.dropout")});
}

AttentionSpec Candidates::attention(int heads, std::int64_t width) const {
  const double deviation = even_deviation(width, width);
  return {.width = width,
          .heads = heads,
          .key_value_heads = heads,
          .head_width = width / heads,
          .dropout = settings_.attention_dropout,
          .deviation = deviation,
          .output_deviation = deviation};
}

}  // namespace mindpipe
