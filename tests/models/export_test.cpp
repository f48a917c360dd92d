#include <gtest/gtest.h>

#include <map>
#include <set>

#include "make_backend.h"
#include "models/model.h"
#include "text_model.h"

// What tensors are called in files that others read. Nothing is allocated.
namespace mindpipe {
namespace {

/// A tensor's name, and how often there is one; pieces that are stacked there keep their number.
using Names = std::multiset<std::string>;

struct Exported {
  Names names;
  std::set<std::string> transposed;
  std::map<std::string, std::vector<std::int64_t>> shapes;  ///< tensors neither rows nor columns
};

Exported exported(const Config& config, int shards = 1) {
  Memory memory{Memory::Kind::counted};
  const std::unique_ptr<Backend> backend = make_cpu_backend(memory, 1, "auto");
  Communicator tensor(*backend, shards);
  const auto model = make_model(config, {*backend, tensor, DType::bf16, false, 1});
  Exported found;
  for (const auto& unit : model->units())
    for (const ParamSpec& spec : unit->params())
      for (const Piece& piece : spec.pieces) {
        const Model::ExportName as = model->export_name(unit->name(), piece.name);
        found.names.insert(as.name);
        if (as.transposed) found.transposed.insert(as.name);
        if (!as.shape.empty()) found.shapes[as.name] = as.shape;
      }
  return found;
}

Config read(const std::string& name, const std::vector<std::string>& overrides) {
  return read_config(std::string(MINDPIPE_SOURCE_DIR "/configs/") + name, overrides);
}

/// A model of one layer (an encoder-decoder: two and one), as its settings are.
Config of_kind(ModelKind kind) {
  Config config;
  config.model.kind = kind;
  block_model(config).layers = kind == ModelKind::transformer ? 2 : 1;
  config.model.transformer.decoder_layers = 1;
  return config;
}

/// Adds weights and biases.
void add(Names& names, const std::string& path, const std::vector<std::string>& stems) {
  for (const std::string& stem : stems)
    for (const char* ending : {".weight", ".bias"}) names.insert(path + stem + ending);
}

TEST(ExportNames, AreThoseOfGpt2) {
  const Exported found = exported(read("gpt2-124m.yaml", {"model.layers=2", "model.tied=false"}));
  Names expected{"transformer.wte.weight", "transformer.wpe.weight", "lm_head.weight"};
  std::set<std::string> transposed;
  add(expected, "transformer.", {"ln_f"});
  for (const std::string layer : {"transformer.h.0.", "transformer.h.1."}) {
    add(expected, layer, {"ln_1", "attn.c_proj", "ln_2", "mlp.c_fc", "mlp.c_proj"});
    for (const char* piece : {"#0", "#1", "#2"}) {
      expected.insert({layer + "attn.c_attn.weight" + piece, layer + "attn.c_attn.bias" + piece});
      transposed.insert(layer + "attn.c_attn.weight" + piece);
    }
    for (const char* stem : {"attn.c_proj", "mlp.c_fc", "mlp.c_proj"})
      transposed.insert(layer + stem + ".weight");
  }
  EXPECT_EQ(found.names, expected);
  EXPECT_EQ(found.transposed, transposed) << "GPT-2's products are stored as [in, out]";
}

TEST(ExportNames, AreThoseOfLlama) {
  const Exported found = exported(read("llama-8b.yaml", {"model.layers=2"}), 8);
  Names expected{"model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"};
  for (const std::string layer : {"model.layers.0.", "model.layers.1."})
    for (const std::string stem :
         {"input_layernorm", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
          "post_attention_layernorm", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"})
      expected.insert(layer + stem + ".weight");
  EXPECT_EQ(found.names, expected);
  EXPECT_TRUE(found.transposed.empty());
}

TEST(ExportNames, AreThoseOfBertForMaskedLM) {
  const Exported found = exported(resolve(of_kind(ModelKind::bert)));
  Names expected{"bert.embeddings.word_embeddings.weight", "bert.embeddings.position_embeddings.weight",
                 "bert.embeddings.token_type_embeddings.weight", "cls.predictions.bias"};
  add(expected, "bert.embeddings.", {"LayerNorm"});
  add(expected, "bert.encoder.layer.0.",
      {"attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense",
       "attention.output.LayerNorm", "intermediate.dense", "output.dense", "output.LayerNorm"});
  add(expected, "cls.predictions.transform.", {"dense", "LayerNorm"});
  EXPECT_EQ(found.names, expected);
  EXPECT_TRUE(found.transposed.empty());
}

/// Both layers of an encoder and the one of a decoder.
Names names_of_layers() {
  Names names;
  for (const char* layer : {"model.encoder.layers.0.", "model.encoder.layers.1.", "model.decoder.layers.0."})
    add(names, layer,
        {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.out_proj",
         "self_attn_layer_norm", "fc1", "fc2", "final_layer_norm"});
  add(names, "model.decoder.layers.0.",
      {"encoder_attn.q_proj", "encoder_attn.k_proj", "encoder_attn.v_proj", "encoder_attn.out_proj",
       "encoder_attn_layer_norm"});
  return names;
}

TEST(ExportNames, AreThoseOfMarianMTModelWithOneTwoAndThreeTables) {
  Config config = of_kind(ModelKind::transformer);
  for (const Tables tables : {Tables::one, Tables::two, Tables::three}) {
    config.model.transformer.tables = tables;
    Names expected = names_of_layers();
    if (tables == Tables::one) expected.insert("model.shared.weight");
    else expected.insert({"model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"});
    if (tables == Tables::three) expected.insert("lm_head.weight");
    EXPECT_EQ(exported(resolve(config)).names, expected) << name_of(tables);
  }
}

TEST(ExportNames, AreThoseOfM2M100ForConditionalGeneration) {
  Config config = of_kind(ModelKind::transformer);
  config.model.transformer.order = BlockOrder::pre_norm;
  config.model.transformer.positions = Places::closed_sinusoids;
  Names expected = names_of_layers();
  expected.insert("model.shared.weight");
  add(expected, "model.", {"encoder.layer_norm", "decoder.layer_norm"});
  EXPECT_EQ(exported(resolve(config)).names, expected);
}

TEST(ExportNames, AreThoseOfViTForImageClassification) {
  Config config = of_kind(ModelKind::vit);
  config.model.vit.width = 32;
  const Exported found = exported(resolve(config));
  Names expected{"vit.embeddings.cls_token", "vit.embeddings.position_embeddings"};
  add(expected, "", {"vit.embeddings.patch_embeddings.projection", "vit.layernorm", "classifier"});
  add(expected, "vit.encoder.layer.0.",
      {"layernorm_before", "attention.attention.query", "attention.attention.key",
       "attention.attention.value", "attention.output.dense", "layernorm_after", "intermediate.dense",
       "output.dense"});
  EXPECT_EQ(found.names, expected);
  const std::map<std::string, std::vector<std::int64_t>> shapes{
      {"vit.embeddings.cls_token", {1, 1, 32}},
      {"vit.embeddings.position_embeddings", {1, 14 * 14 + 1, 32}},
      {"vit.embeddings.patch_embeddings.projection.weight", {32, 3, 16, 16}}};
  EXPECT_EQ(found.shapes, shapes);
}

void expect_a_name_of_its_own(const Config& config) {
  const Names names = exported(resolve(config)).names;
  for (const std::string& name : names) EXPECT_EQ(names.count(name), 1u) << name;
}

TEST(ExportNames, AreThoseOfAWideResnet) {
  const Exported found = exported(read("wide-resnet-tiny.yaml", {"model.depth=16"}));
  Names expected{"conv1.weight"};
  const auto add_norm = [&](const std::string& name) {
    for (const char* part : {".weight", ".bias", ".running_mean", ".running_var"})
      expected.insert(name + part);
  };
  add(expected, "", {"fc"});
  add_norm("bn1");
  for (const std::string group : {"block1", "block2", "block3"})
    for (const std::string& layer : {group + ".layer.0.", group + ".layer.1."}) {
      for (const char* conv : {"conv1.weight", "conv2.weight"}) expected.insert(layer + conv);
      for (const char* norm : {"bn1", "bn2"}) add_norm(layer + norm);
      if (layer.ends_with("0.") && group != "block1") expected.insert(layer + "convShortcut.weight");
    }
  EXPECT_EQ(found.names, expected);
  EXPECT_TRUE(found.transposed.empty());
  EXPECT_EQ(found.shapes.at("conv1.weight"), (std::vector<std::int64_t>{16, 1, 3, 3}));
  EXPECT_EQ(found.shapes.at("block3.layer.0.conv1.weight"), (std::vector<std::int64_t>{64, 32, 3, 3}));
  EXPECT_EQ(found.shapes.at("block3.layer.0.convShortcut.weight"), (std::vector<std::int64_t>{64, 32, 1, 1}));
}

TEST(ExportNames, AreNeverThoseOfTwoTensors) {
  for (const ModelKind kind : all_kinds<ModelKind>())
    for (const ModelNorm norm : {ModelNorm::layer, ModelNorm::rms})
      for (const MlpKind mlp : {MlpKind::gelu, MlpKind::relu, MlpKind::swiglu})
        for (const bool bias : {false, true}) {
          if (kind == ModelKind::wide_resnet || kind == ModelKind::supernet) continue;  // without these
          Config config;
          config.model.kind = kind;
          if (kind == ModelKind::subnet) choose_a_plain_one(config);
          BlockSettings& m = block_model(config);
          m.layers = 12;
          m.norm = norm;
          m.mlp = mlp;
          m.bias = bias;
          for (const Positions positions : {Positions::learned, Positions::rotary})
            for (const bool tied : {false, true}) {
              config.model.gpt.positions = positions;
              config.model.gpt.tied = tied;
              if (kind == ModelKind::gpt) expect_a_name_of_its_own(config);
            }
          for (const BlockOrder order : {BlockOrder::pre_norm, BlockOrder::post_norm})
            for (const Places places : {Places::learned, Places::sinusoids})
              for (const Tables tables : {Tables::one, Tables::two, Tables::three}) {
                config.model.transformer.order = order;
                config.model.transformer.positions = places;
                config.model.transformer.tables = tables;
                if (kind == ModelKind::transformer) expect_a_name_of_its_own(config);
              }
          expect_a_name_of_its_own(config);
        }
}

}  // namespace
}  // namespace mindpipe
