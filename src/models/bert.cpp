#include "config/sections/data.h"
#include "config/sections/train.h"
#include "layers/embedding.h"
#include "layers/picked_classifier.h"
#include "models/make.h"
#include "models/names.h"
#include "models/residual_blocks.h"

namespace mindpipe::bert {
namespace {

// BertForMaskedLM, in which the head's table is the embedding's.
const NameTable names{{"embedding.embedding", "bert.embeddings.word_embeddings"},
                      {"positions.positions", "bert.embeddings.position_embeddings"},
                      {"positions.types", "bert.embeddings.token_type_embeddings"},
                      {"positions.norm", "bert.embeddings.LayerNorm"},
                      {"layers.N.attention.attention.q", "bert.encoder.layer.N.attention.self.query"},
                      {"layers.N.attention.attention.k", "bert.encoder.layer.N.attention.self.key"},
                      {"layers.N.attention.attention.v", "bert.encoder.layer.N.attention.self.value"},
                      {"layers.N.attention.attention.output", "bert.encoder.layer.N.attention.output.dense"},
                      {"layers.N.attention.norm", "bert.encoder.layer.N.attention.output.LayerNorm"},
                      {"layers.N.mlp.mlp.gate", "bert.encoder.layer.N.intermediate.gate"},
                      {"layers.N.mlp.mlp.up", "bert.encoder.layer.N.intermediate.dense"},
                      {"layers.N.mlp.mlp.output", "bert.encoder.layer.N.output.dense"},
                      {"layers.N.mlp.norm", "bert.encoder.layer.N.output.LayerNorm"},
                      {"head.transform", "cls.predictions.transform.dense"},
                      {"head.final_norm", "cls.predictions.transform.LayerNorm"},
                      {"head.embedding", "cls.predictions"}};

/// What others ask of the model: its samples, texts with holes, and its speed.
void describe(Model& model, const Settings& m, const DataConfig& data) {
  const std::int64_t rows = data.sequence, masked = data.masked;
  model.add_field({field::tokens, DType::i32, {rows}, m.vocabulary});
  model.add_field({field::picked, DType::i32, {masked}, rows});
  model.add_field({field::targets, DType::i32, {masked}, m.vocabulary});
  model.stream({rows, m.width});
  model.count_in({"token", rows});
  model.export_as([](const std::string& unit, const std::string& part) {
    return Model::ExportName{name_from(names, unit, part)};
  });
  model.expect_in_files(
      {.prefix = "bert.",
       .second = {{"cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"},
                  {"cls.predictions.decoder.bias", "cls.predictions.bias"}},
       .left_out = {"bert.embeddings.position_ids", "bert.embeddings.token_type_ids", "bert.pooler.*",
                    "cls.seq_relationship.*"},
       .head = {"cls.*", "classifier.*", "qa_outputs.*"}});
}

/// 6 operations a parameter and token, of the table and the transform before it for the picked rows alone,
/// and those of attention.
void estimate(Model& model, const Settings& m, const DataConfig& data) {
  const double width = m.width, rows = data.sequence, tables = width * (m.vocabulary + m.context + m.types),
               head = width * (m.vocabulary + width);
  model.estimate({"6N + 12Lhq", 6 * (static_cast<double>(model.parameters()) - tables - width * width) +
                                    6 * head * data.masked / rows + 12 * m.layers * width * rows});
}

}  // namespace

/// Makes BERT with the head that finds masked tokens: post-norm layers between embeddings, which are normed,
/// and a classifier of the picked rows, whose table is the embedding's.
std::unique_ptr<Model> make(const Settings& m, const DataConfig& data, const TrainConfig& train,
                            const LayerContext& context) {
  const int shards = context.tensor.logical();
  require_divisible(m.heads, shards, "model.heads");
  require_divisible(m.mlp_width, shards, "model.mlp_width");

  auto model = std::make_unique<Model>();
  describe(*model, m, data);
  ResidualBlocks blocks(*model, train, m, context);
  Unit& table = model->add_unit("embedding");
  Unit& positions = model->add_unit("positions");
  model->add_block("embedding",
                   std::make_unique<Embedding>(context, table, positions, "embedding",
                                               EmbeddingSpec{.vocabulary = m.vocabulary,
                                                             .width = m.width,
                                                             .positions = m.context,
                                                             .dropout = m.dropout,
                                                             .deviation = m.initial_deviation,
                                                             .uses = 2,
                                                             .types = m.types,
                                                             .padding = data.special.padding,
                                                             .norm = blocks.norm_spec()}),
                   {&table, &positions});
  AttentionSpec attention = blocks.attention();
  attention.causal = false;
  blocks.add_layers("layers", m.layers, attention);

  Unit& head = model->add_unit("head");
  const SoftmaxSpec softmax{.vocabulary = m.vocabulary,
                            .width = m.width,
                            .deviation = m.initial_deviation,
                            .uses = 2,
                            .use = 1,
                            .bias = true,
                            .label_smoothing = train.label_smoothing};
  model->add_block(
      "head",
      std::make_unique<PickedClassifier>(context, table, head, softmax,
                                         TransformSpec{true, blocks.activation(), blocks.norm_spec()}),
      {&head, &table}, 1);
  estimate(*model, m, data);
  return model;
}

}  // namespace mindpipe::bert
