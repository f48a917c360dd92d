#include <cmath>

#include "config/sections/data.h"
#include "layers/bridge.h"
#include "layers/embedding.h"
#include "models/make.h"
#include "models/names.h"
#include "models/pairs.h"
#include "models/residual_blocks.h"

namespace mindpipe::transformer {
namespace {

// MarianMTModel and M2M100ForConditionalGeneration: the norms of both orders have the same names.
const NameTable names{{"embedding.embedding", "model.shared"},
                      {"encoder.table.embedding", "model.encoder.embed_tokens"},
                      {"encoder.positions.positions", "model.encoder.embed_positions"},
                      {"encoder.N.attention.attention.q", "model.encoder.layers.N.self_attn.q_proj"},
                      {"encoder.N.attention.attention.k", "model.encoder.layers.N.self_attn.k_proj"},
                      {"encoder.N.attention.attention.v", "model.encoder.layers.N.self_attn.v_proj"},
                      {"encoder.N.attention.attention.output", "model.encoder.layers.N.self_attn.out_proj"},
                      {"encoder.N.attention.norm", "model.encoder.layers.N.self_attn_layer_norm"},
                      {"encoder.N.mlp.mlp.gate", "model.encoder.layers.N.gate"},
                      {"encoder.N.mlp.mlp.up", "model.encoder.layers.N.fc1"},
                      {"encoder.N.mlp.mlp.output", "model.encoder.layers.N.fc2"},
                      {"encoder.N.mlp.norm", "model.encoder.layers.N.final_layer_norm"},
                      {"bridge.norm", "model.encoder.layer_norm"},
                      {"decoder.table.embedding", "model.decoder.embed_tokens"},
                      {"bridge.positions", "model.decoder.embed_positions"},
                      {"decoder.N.attention.attention.q", "model.decoder.layers.N.self_attn.q_proj"},
                      {"decoder.N.attention.attention.k", "model.decoder.layers.N.self_attn.k_proj"},
                      {"decoder.N.attention.attention.v", "model.decoder.layers.N.self_attn.v_proj"},
                      {"decoder.N.attention.attention.output", "model.decoder.layers.N.self_attn.out_proj"},
                      {"decoder.N.attention.norm", "model.decoder.layers.N.self_attn_layer_norm"},
                      {"decoder.N.cross.cross.q", "model.decoder.layers.N.encoder_attn.q_proj"},
                      {"decoder.N.cross.cross.k", "model.decoder.layers.N.encoder_attn.k_proj"},
                      {"decoder.N.cross.cross.v", "model.decoder.layers.N.encoder_attn.v_proj"},
                      {"decoder.N.cross.cross.output", "model.decoder.layers.N.encoder_attn.out_proj"},
                      {"decoder.N.cross.norm", "model.decoder.layers.N.encoder_attn_layer_norm"},
                      {"decoder.N.mlp.mlp.gate", "model.decoder.layers.N.gate"},
                      {"decoder.N.mlp.mlp.up", "model.decoder.layers.N.fc1"},
                      {"decoder.N.mlp.mlp.output", "model.decoder.layers.N.fc2"},
                      {"decoder.N.mlp.norm", "model.decoder.layers.N.final_layer_norm"},
                      {"head.final_norm", "model.decoder.layer_norm"},
                      {"head.embedding.bias", "final_logits_bias"},
                      {"head.classifier.bias", "final_logits_bias"},
                      {"head.classifier", "lm_head"}};

Model::FileNames file_names_for(const Settings& m) {
  const std::string source = "model.encoder.embed_tokens.weight",
                    target = "model.decoder.embed_tokens.weight", one = "model.shared.weight";
  Model::FileNames expected{.prefix = "model.", .head = {"lm_head.*", "final_logits_bias"}};
  if (m.tables == Tables::one) expected.second = {{source, one}, {target, one}, {"lm_head.weight", one}};
  else expected.left_out = {one};
  if (m.tables == Tables::two) expected.second = {{"lm_head.weight", target}};
  if (m.positions != Places::learned)
    for (const char* side : {"model.encoder.embed_positions.", "model.decoder.embed_positions."})
      expected.left_out.push_back(std::string(side) + "*");
  if (m.order == BlockOrder::post_norm && !m.logits_bias)
    expected.zeros = {{"final_logits_bias", {1, m.vocabulary}}};
  if (m.logits_bias) expected.optional = {"final_logits_bias"};
  return expected;
}

/// 6 operations for each parameter of a side and token of that side, of the softmax's table for targets, and
/// those of attention; per token of a target. The text stands for sides of equal length and depth.
void estimate(Model& model, const Settings& m, const DataConfig& data) {
  const double width = m.width, square = width * width, mlp = 2 * width * m.mlp_width,
               source = data.source_sequence, target = data.target_sequence;
  const double encoder = m.layers * source * (6 * (4 * square + mlp) + 12 * width * source),
               decoder = m.decoder_layers * (target * (6 * (6 * square + mlp) + 6 * width * target) +
                                             source * (6 * 2 * square + 12 * width * target)),
               softmax = target * 6 * width * m.vocabulary;
  model.estimate({"6N + 24Lhs + 6Lht", (encoder + decoder + softmax) / target});
}

ResidualBlocks blocks_for(Model& model, const Settings& m, const TrainConfig& train,
                          const LayerContext& context) {
  if (m.order == BlockOrder::post_norm) return {model, train, m, context};
  return {model, train, m, context, 2 * (m.layers + m.decoder_layers)};
}

EmbeddingSpec embedding_of(const Settings& m, const DataConfig& data) {
  EmbeddingSpec spec{.vocabulary = m.vocabulary,
                     .width = m.width,
                     .dropout = m.dropout,
                     .deviation = m.initial_deviation,
                     .factor = m.scaled ? std::sqrt(static_cast<double>(m.width)) : 1,
                     .padding = data.special.padding,
                     .first_position = m.first_position};
  if (m.positions == Places::learned) spec.positions = m.first_position + m.context;
  else spec.sinusoids = m.positions == Places::sinusoids ? Sinusoids::below_base : Sinusoids::up_to_base;
  return spec;
}

void add_encoder(ResidualBlocks& blocks, int layers, AttentionSpec attention) {
  attention.causal = false;
  attention.key_lengths = field::source_lengths;
  blocks.add_layers("encoder", layers, attention);
}

/// Adds the decoder, and says that the encoder's output, of that shape, enters it up to its last reader.
void add_decoder(Model& model, ResidualBlocks& blocks, int layers, const AttentionSpec& attention,
                 const Shape& memory) {
  AttentionSpec cross = attention;
  cross.key_lengths = field::source_lengths;
  const std::size_t first_reader = model.blocks().size();
  std::size_t last_reader = first_reader;
  for (int i = 0; i < layers; ++i) {
    const std::string layer = "decoder." + std::to_string(i);
    blocks.add_self_attention(layer + ".attention", attention);
    last_reader = model.blocks().size();
    blocks.add_cross_attention(layer + ".cross", cross);
    blocks.add_mlp(layer + ".mlp");
  }
  model.carry_memory(first_reader, last_reader, memory);
}

}  // namespace

/// Makes an encoder-decoder Transformer: an encoder, a bridge from its output to the decoder, which reads it
/// in every layer, a classifier. Sources are padded behind their lengths, targets behind their end.
std::unique_ptr<Model> make(const Settings& m, const DataConfig& data, const TrainConfig& train,
                            const LayerContext& context) {
  const int shards = context.tensor.logical();
  require_divisible(m.heads, shards, "model.heads");
  require_divisible(m.mlp_width, shards, "model.mlp_width");

  auto model = std::make_unique<Model>();
  see_pairs(*model, data, m.vocabulary);
  model->export_as([words = m.vocabulary](const std::string& unit, const std::string& part) {
    Model::ExportName found{name_from(names, unit, part)};
    if (unit == "head" && part.ends_with(".bias") && !part.starts_with("final_norm"))
      found.shape = {1, words};
    return found;
  });
  model->expect_in_files(file_names_for(m));
  ResidualBlocks blocks = blocks_for(*model, m, train, context);
  const AttentionSpec attention = blocks.attention();
  const Shape memory{data.source_sequence, m.width};

  model->stream(memory);
  const bool one = m.tables == Tables::one, tied = m.tables != Tables::three;
  Unit& source_table = model->add_unit(one ? "embedding" : "encoder.table");
  Unit& source = model->add_unit("encoder.positions");
  EmbeddingSpec spec = embedding_of(m, data);
  spec.field = field::source;
  spec.uses = one ? 3 : 1;
  model->add_block("encoder.embedding",
                   std::make_unique<Embedding>(context, source_table, source, "encoder.embedding", spec),
                   {&source_table, &source});
  add_encoder(blocks, m.layers, attention);

  model->stream({data.target_sequence, m.width});
  Unit& target_table = one ? source_table : model->add_unit("decoder.table");
  Unit& bridge = model->add_unit("bridge");
  spec.field = field::tokens;
  spec.uses = one ? 3 : tied ? 2 : 1;
  spec.use = one ? 1 : 0;
  auto embedding = std::make_unique<Embedding>(context, target_table, bridge, "bridge", spec);
  std::optional<Norm> norm;
  if (m.order == BlockOrder::pre_norm) norm.emplace(blocks.norm(bridge));
  model->add_block("bridge", std::make_unique<Bridge>(context, norm, std::move(embedding)),
                   {&target_table, &bridge}, spec.use);
  add_decoder(*model, blocks, m.decoder_layers, attention, memory);
  if (tied) blocks.add_head(m.vocabulary, &target_table, spec.uses, spec.use + 1, m.logits_bias);
  else blocks.add_head(m.vocabulary, nullptr, 1, 0, m.logits_bias);
  estimate(*model, m, data);
  return model;
}

}  // namespace mindpipe::transformer
