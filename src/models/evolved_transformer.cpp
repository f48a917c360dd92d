#include <cmath>

#include "config/sections/data.h"
#include "config/sections/train.h"
#include "layers/bridge.h"
#include "layers/embedding.h"
#include "layers/gated_unit.h"
#include "layers/mlp.h"
#include "layers/normed_mlp.h"
#include "layers/parallel_block.h"
#include "layers/two_sided.h"
#include "models/make.h"
#include "models/pairs.h"
#include "models/residual_blocks.h"

namespace mindpipe::evolved_transformer {
namespace {

/// Appends the branches of cells, a block on a unit of its own each: x + drop(branch(norm(x))).
class Cells {
 public:
  Cells(Model& model, const Settings& m, const LayerContext& context)
      : model_(model), settings_(m), context_(context) {}

  Norm norm(Unit& unit, const std::string& name, std::int64_t width, Form form) const {
    return {context_, unit, name, NormKind::layer, width, settings_.norm_epsilon, true, form};
  }
  void add_encoder(const std::string& cell);
  void add_decoder(const std::string& cell);

 private:
  AttentionSpec attention(int heads) const;
  AttentionSpec self(bool causal) const;
  AttentionSpec cross() const;
  void add(const std::string& path, Unit& unit, std::unique_ptr<Branch> branch, Param bias = {});
  template <class AnyAttention>
  void add_attention(const std::string& path, const std::string& part, const AttentionSpec& spec);
  void add_encoder_convolution(const std::string& path);
  void add_decoder_convolution(const std::string& path);
  void add_parallel(const std::string& path);
  void add_mlp(const std::string& path);
  void add_normed_mlp(const std::string& path);
  std::unique_ptr<Convolution> separable(Unit& unit, const std::string& name,
                                         const ConvolutionSpec& spec) const {
    return std::make_unique<SeparableConvolution>(context_, unit, name, spec);
  }

  Model& model_;
  const Settings& settings_;
  LayerContext context_;
};

AttentionSpec Cells::attention(int heads) const {
  const double deviation = even_deviation(settings_.width, settings_.width);
  return {.width = settings_.width,
          .heads = heads,
          .key_value_heads = heads,
          .head_width = settings_.width / heads,
          .causal = false,
          .dropout = settings_.attention_dropout,
          .deviation = deviation,
          .output_deviation = deviation};
}
/// The decoder's is causal; the encoder's sees no padding.
AttentionSpec Cells::self(bool causal) const {
  AttentionSpec spec = attention(settings_.heads);
  spec.causal = causal;
  if (!causal) spec.key_lengths = field::source_lengths;
  return spec;
}
AttentionSpec Cells::cross() const {
  AttentionSpec spec = attention(settings_.heads);
  spec.key_lengths = field::source_lengths;
  return spec;
}

void Cells::add(const std::string& path, Unit& unit, std::unique_ptr<Branch> branch, Param bias) {
  model_.add_block(path,
                   std::make_unique<ResidualBlock>(context_, norm(unit, "norm", settings_.width, Form::rows),
                                                   std::move(branch), bias, settings_.dropout, path),
                   {&unit});
}

template <class AnyAttention>
void Cells::add_attention(const std::string& path, const std::string& part, const AttentionSpec& spec) {
  Unit& unit = model_.add_unit(path);
  add(path, unit, std::make_unique<AnyAttention>(context_, unit, part, path, spec));
}

void Cells::add_encoder_convolution(const std::string& path) {
  const std::int64_t width = settings_.width, inner = 4 * width, half = width / 2;
  const std::string_view lengths = field::source_lengths;
  Unit& unit = model_.add_unit(path);
  TwoSidedSpec spec{
      .left = std::make_unique<Dense>(context_, unit, "left", width, inner, Activation::relu),
      .right = std::make_unique<StandardConvolution>(
          context_, unit, "right", ConvolutionSpec{width, half, {3, false}, lengths, Activation::relu}),
      .left_width = inner,
      .right_width = half,
      .norm = norm(unit, "inner_norm", inner, Form::whole),
      .closing = separable(unit, "closing", {inner, half, {9, false}, lengths}),
      .closing_width = half,
      .width = width,
      .lengths = lengths,
      .dropout = settings_.dropout};
  add(path, unit, std::make_unique<TwoSidedBranch>(context_, path, std::move(spec)));
}

/// Targets are padded behind, so that what sees earlier rows alone sees no padding.
void Cells::add_decoder_convolution(const std::string& path) {
  const std::int64_t width = settings_.width, twice = 2 * width, half = width / 2;
  Unit& unit = model_.add_unit(path);
  TwoSidedSpec spec{.left = separable(unit, "left", {width, twice, {11, true}, {}, Activation::relu}),
                    .right = separable(unit, "right", {width, half, {7, true}}),
                    .left_width = twice,
                    .right_width = half,
                    .norm = norm(unit, "inner_norm", twice, Form::whole),
                    .closing = separable(unit, "closing", {twice, width, {7, true}}),
                    .closing_width = width,
                    .width = width,
                    .dropout = settings_.dropout};
  add(path, unit, std::make_unique<TwoSidedBranch>(context_, path, std::move(spec)));
}

void Cells::add_parallel(const std::string& path) {
  Unit& unit = model_.add_unit(path);
  AttentionSpec beside = self(true);
  beside.heads = beside.key_value_heads = parallel_heads(settings_);
  beside.head_width = settings_.width / beside.heads;
  model_.add_block(path,
                   std::make_unique<ParallelBlock>(
                       context_, norm(unit, "norm", settings_.width, Form::rows),
                       std::make_unique<SelfAttention>(context_, unit, "attention", path, beside),
                       std::make_unique<CrossAttention>(context_, unit, "cross", path + ".cross", cross()),
                       settings_.dropout, path),
                   {&unit});
}

void Cells::add_mlp(const std::string& path) {
  const std::int64_t width = settings_.width, inner = 4 * width;
  Unit& unit = model_.add_unit(path);
  const double deviation = even_deviation(width, inner);
  auto mlp = std::make_unique<Mlp>(context_, unit, "mlp",
                                   MlpSpec{.width = width,
                                           .inner = inner,
                                           .activation = Activation::relu,
                                           .bias = true,
                                           .deviation = deviation,
                                           .output_deviation = deviation,
                                           .dropout = settings_.dropout,
                                           .purpose = purpose_of(path + ".inner.dropout")});
  add(path, unit, std::move(mlp), residual_bias(unit, "mlp.output", width));
}

void Cells::add_normed_mlp(const std::string& path) {
  const std::int64_t width = settings_.width;
  Unit& unit = model_.add_unit(path);
  auto mlp = std::make_unique<NormedMlp>(
      context_, unit, "mlp", path,
      NormedMlpSpec{width, 4 * width, Activation::silu, settings_.dropout, settings_.norm_epsilon});
  add(path, unit, std::move(mlp), residual_bias(unit, "mlp.output", width));
}

void Cells::add_encoder(const std::string& cell) {
  Unit& glu = model_.add_unit(cell + ".glu");
  add(cell + ".glu", glu, std::make_unique<GatedUnit>(context_, glu, "glu", settings_.width));
  add_encoder_convolution(cell + ".convolution");
  add_attention<SelfAttention>(cell + ".attention", "attention", self(false));
  add_mlp(cell + ".mlp");
}

void Cells::add_decoder(const std::string& cell) {
  add_parallel(cell + ".parallel");
  add_decoder_convolution(cell + ".convolution");
  add_attention<SelfAttention>(cell + ".attention", "attention", self(true));
  add_attention<CrossAttention>(cell + ".cross", "cross", cross());
  add_normed_mlp(cell + ".mlp");
}

/// 6 operations for each parameter of a product and token of its side, of the softmax's table for targets,
/// and those of attention; per token of a target. The text stands for sides of equal length and depth.
void estimate(Model& model, const Settings& m, const DataConfig& data) {
  const double width = m.width, square = width * width, source = data.source_sequence,
               target = data.target_sequence;
  const double encoder = m.layers * source * (6 * (2 + 4 + 1.5 + 2 + 4 + 8) * square + 12 * width * source),
               decoder = m.decoder_layers *
                         (target * (6 * (4 + 2 + 2 + 0.5 + 2 + 4 + 2 + 8) * square + 12 * width * target) +
                          source * (6 * 4 * square + 24 * width * target)),
               softmax = target * 6 * width * m.vocabulary;
  model.estimate({"6N + 36Lhs + 12Lht", (encoder + decoder + softmax) / target});
}

/// One table for source, target and softmax, times the root of the width, whose row of padding is zeros;
/// sines beside cosines. Which user of the table this is, it is told.
EmbeddingSpec embedding_of(const Settings& m, const DataConfig& data, std::string_view field, int use) {
  const double root = std::sqrt(static_cast<double>(m.width));
  EmbeddingSpec spec{.vocabulary = m.vocabulary,
                     .width = m.width,
                     .dropout = m.dropout,
                     .deviation = 1 / root,
                     .field = field,
                     .uses = 3,
                     .use = use,
                     .factor = root,
                     .padding = data.special.padding};
  spec.sinusoids = Sinusoids::up_to_base;
  return spec;
}

void add_head(Model& model, const Settings& m, const TrainConfig& train, const LayerContext& context,
              Unit& table) {
  const ClassifierSpec spec{.vocabulary = m.vocabulary,
                            .width = m.width,
                            .deviation = 1 / std::sqrt(static_cast<double>(m.width)),
                            .uses = 3,
                            .use = 2,
                            .epsilon = m.norm_epsilon,
                            .label_smoothing = train.label_smoothing};
  Unit& last = model.add_unit("head");
  model.add_block("head", std::make_unique<Classifier>(context, table, last, spec), {&last, &table}, 2);
}

}  // namespace

/// Makes an Evolved Transformer (So, Liang and Le, 2019), a block for each residual branch of its cells. The
/// memory enters the decoder up to the last branch that reads it.
std::unique_ptr<Model> make(const Settings& m, const DataConfig& data, const TrainConfig& train,
                            const LayerContext& context) {
  const int shards = context.tensor.logical();
  require_divisible(m.heads, shards, "model.heads");
  require_divisible(parallel_heads(m), shards, "the number of heads that begin a cell of the decoder");

  auto model = std::make_unique<Model>();
  see_pairs(*model, data, m.vocabulary);
  Cells cells(*model, m, context);
  const Shape memory{data.source_sequence, m.width};
  model->stream(memory);
  Unit& table = model->add_unit("embedding");
  Unit& source = model->add_unit("encoder.positions");
  model->add_block("encoder.embedding",
                   std::make_unique<Embedding>(context, table, source, "encoder.embedding",
                                               embedding_of(m, data, field::source, 0)),
                   {&table, &source});
  for (int i = 0; i < m.layers; ++i) cells.add_encoder("encoder." + std::to_string(i));

  model->stream({data.target_sequence, m.width});
  Unit& bridge = model->add_unit("bridge");
  auto embedding =
      std::make_unique<Embedding>(context, table, bridge, "bridge", embedding_of(m, data, field::tokens, 1));
  model->add_block("bridge",
                   std::make_unique<Bridge>(context, cells.norm(bridge, "norm", m.width, Form::rows),
                                            std::move(embedding)),
                   {&table, &bridge}, 1);
  const std::size_t first_reader = model->blocks().size();
  for (int i = 0; i < m.decoder_layers; ++i) cells.add_decoder("decoder." + std::to_string(i));
  model->carry_memory(first_reader, model->blocks().size() - 2, memory);
  add_head(*model, m, train, context, table);
  estimate(*model, m, data);
  return model;
}

}  // namespace mindpipe::evolved_transformer
