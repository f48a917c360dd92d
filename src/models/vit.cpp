#include "config/sections/train.h"
#include "layers/patches.h"
#include "layers/picked_classifier.h"
#include "models/make.h"
#include "models/names.h"
#include "models/pictures.h"
#include "models/residual_blocks.h"

namespace mindpipe::vit {
namespace {

// ViTForImageClassification. Its patches are the kernels of a convolution.
const NameTable names{{"embedding.class.weight", "vit.embeddings.cls_token"},
                      {"embedding.positions.weight", "vit.embeddings.position_embeddings"},
                      {"embedding.patches", "vit.embeddings.patch_embeddings.projection"},
                      {"layers.N.attention.norm", "vit.encoder.layer.N.layernorm_before"},
                      {"layers.N.attention.attention.q", "vit.encoder.layer.N.attention.attention.query"},
                      {"layers.N.attention.attention.k", "vit.encoder.layer.N.attention.attention.key"},
                      {"layers.N.attention.attention.v", "vit.encoder.layer.N.attention.attention.value"},
                      {"layers.N.attention.attention.output", "vit.encoder.layer.N.attention.output.dense"},
                      {"layers.N.mlp.norm", "vit.encoder.layer.N.layernorm_after"},
                      {"layers.N.mlp.mlp.gate", "vit.encoder.layer.N.intermediate.gate"},
                      {"layers.N.mlp.mlp.up", "vit.encoder.layer.N.intermediate.dense"},
                      {"layers.N.mlp.mlp.output", "vit.encoder.layer.N.output.dense"},
                      {"head.final_norm", "vit.layernorm"},
                      {"head.classifier", "classifier"}};

Model::ExportName name_of_part(const Settings& m, std::int64_t rows, const std::string& unit,
                               const std::string& part) {
  Model::ExportName found{name_from(names, unit, part)};
  if (part == "class.weight") found.shape = {1, 1, m.width};
  if (part == "positions.weight") found.shape = {1, rows, m.width};
  if (part == "patches.weight") found.shape = {m.width, m.channels, m.patch, m.patch};
  return found;
}

/// For each row of a picture 6 operations a parameter of its layers, and those of attention; the classifier
/// sees one row.
void estimate(Model& model, const Settings& m, std::int64_t rows) {
  const double q = static_cast<double>(rows), classifier = (m.width + 1.0) * m.classes,
               layers = static_cast<double>(model.parameters()) - (q + 1) * m.width - classifier;
  model.estimate({"(6N + 12Lhq)q", (6 * layers + 12.0 * m.layers * m.width * q) * q + 6 * classifier});
}

}  // namespace

/// Makes a Vision Transformer: patches and a class token, pre-norm layers, a classifier of the class token.
std::unique_ptr<Model> make(const Settings& m, const DataConfig&, const TrainConfig& train,
                            const LayerContext& context) {
  const int shards = context.tensor.logical();
  require_divisible(m.heads, shards, "model.heads");
  require_divisible(m.mlp_width, shards, "model.mlp_width");

  auto model = std::make_unique<Model>();
  see_pictures(*model, m);
  const PictureShape picture = picture_of(m, m.patch);
  const std::int64_t rows = picture.patches() + 1;
  model->export_as([m, rows](const std::string& unit, const std::string& part) {
    return name_of_part(m, rows, unit, part);
  });
  model->expect_in_files(
      {.prefix = "vit.",
       .left_out = {"vit.pooler.*", "vit.embeddings.mask_token", "vit.embeddings.position_ids"},
       .head = {"classifier.*"}});
  model->stream({PatchEmbedding::padded_rows(picture, shards), m.width});
  Unit& patches = model->add_unit("embedding");
  model->add_block(
      "embedding",
      std::make_unique<PatchEmbedding>(context, patches, "embedding",
                                       PatchSpec{picture, m.width, m.dropout, m.initial_deviation}),
      {&patches});
  ResidualBlocks blocks(*model, train, m, context, 1);
  AttentionSpec attention = blocks.attention();
  attention.causal = false;
  attention.key_rows = rows;
  blocks.add_layers("layers", m.layers, attention);

  Unit& head = model->add_unit("head");
  const SoftmaxSpec softmax{.vocabulary = m.classes,
                            .width = m.width,
                            .deviation = m.initial_deviation,
                            .table = "classifier",
                            .bias = true,
                            .label_smoothing = train.label_smoothing};
  model->add_block(
      "head",
      std::make_unique<PickedClassifier>(
          context, head, head, softmax,
          TransformSpec{.picks = false, .activation = Activation::none, .norm = blocks.norm_spec()}),
      {&head});
  estimate(*model, m, rows);
  return model;
}

}  // namespace mindpipe::vit
