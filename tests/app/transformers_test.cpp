#include <nlohmann/json.hpp>

#include "app/torch_oracle.h"
#include "app/torch_styles.h"

// Run directories of every kind, as transformers loads them. `make test-peers` installs it.
namespace mindpipe {
namespace {

using namespace oracle;
using Json = nlohmann::json;

const char* activation_there(MlpKind kind) {
  return kind == MlpKind::gelu         ? "gelu_new"
         : kind == MlpKind::gelu_exact ? "gelu"
         : kind == MlpKind::relu       ? "relu"
                                       : "silu";
}

Json config_of(const gpt::Settings& m) {
  if (m.positions == Positions::learned)
    return {{"model_type", "gpt2"},       {"architectures", {"GPT2LMHeadModel"}},
            {"vocab_size", m.vocabulary}, {"tie_word_embeddings", m.tied},
            {"n_positions", m.context},   {"n_embd", m.width},
            {"n_layer", m.layers},        {"n_head", m.heads},
            {"bos_token_id", 0},          {"eos_token_id", 0},
            {"n_inner", m.mlp_width},     {"layer_norm_epsilon", m.norm_epsilon}};
  return {{"model_type", "llama"},
          {"architectures", {"LlamaForCausalLM"}},
          {"vocab_size", m.vocabulary},
          {"tie_word_embeddings", m.tied},
          {"max_position_embeddings", m.context},
          {"hidden_size", m.width},
          {"intermediate_size", m.mlp_width},
          {"num_hidden_layers", m.layers},
          {"num_attention_heads", m.heads},
          {"num_key_value_heads", m.key_value_heads},
          {"rms_norm_eps", m.norm_epsilon},
          {"rope_theta", m.rotary_base},
          {"attention_bias", m.bias},
          {"mlp_bias", m.bias}};
}

/// Settings that BERT and ViT call alike.
Json config_of_blocks(const BlockSettings& m) {
  return {{"hidden_size", m.width},           {"num_hidden_layers", m.layers},
          {"num_attention_heads", m.heads},   {"intermediate_size", m.mlp_width},
          {"layer_norm_eps", m.norm_epsilon}, {"hidden_act", activation_there(m.mlp)}};
}

Json config_of(const bert::Settings& m, const SpecialTokens& special) {
  Json all = config_of_blocks(m);
  all.update({{"model_type", "bert"},
              {"architectures", {"BertForMaskedLM"}},
              {"vocab_size", m.vocabulary},
              {"max_position_embeddings", m.context},
              {"type_vocab_size", m.types},
              {"pad_token_id", special.padding}});
  return all;
}

Json config_of(const transformer::Settings& m, const SpecialTokens& special) {
  const bool marian = m.order == BlockOrder::post_norm;
  return {{"model_type", marian ? "marian" : "m2m_100"},
          {"architectures", {marian ? "MarianMTModel" : "M2M100ForConditionalGeneration"}},
          {"vocab_size", m.vocabulary},
          {"decoder_vocab_size", m.vocabulary},
          {"d_model", m.width},
          {"encoder_layers", m.layers},
          {"decoder_layers", m.decoder_layers},
          {"encoder_attention_heads", m.heads},
          {"decoder_attention_heads", m.heads},
          {"encoder_ffn_dim", m.mlp_width},
          {"decoder_ffn_dim", m.mlp_width},
          {"activation_function", activation_there(m.mlp)},
          {"max_position_embeddings", m.first_position + m.context},
          {"scale_embedding", m.scaled},
          {"share_encoder_decoder_embeddings", m.tables == Tables::one},
          {"tie_word_embeddings", m.tables != Tables::three},
          {"pad_token_id", special.padding},
          {"bos_token_id", special.start},
          {"eos_token_id", special.end},
          {"decoder_start_token_id", special.start}};
}

Json config_of(const vit::Settings& m) {
  Json names = Json::object();
  for (int i = 0; i < m.classes; ++i) names[std::to_string(i)] = "class " + std::to_string(i);
  Json all = config_of_blocks(m);
  all.update({{"model_type", "vit"},
              {"architectures", {"ViTForImageClassification"}},
              {"image_size", {m.picture_height, m.picture_width}},
              {"patch_size", m.patch},
              {"num_channels", m.channels},
              {"id2label", names}});
  return all;
}

/// What transformers reads beside the weights.
Json transformers_config(const Config& config) {
  switch (config.model.kind) {
    case ModelKind::gpt:
      return config_of(config.model.gpt);
    case ModelKind::bert:
      return config_of(config.model.bert, config.data.special);
    case ModelKind::transformer:
      return config_of(config.model.transformer, config.data.special);
    case ModelKind::vit:
      return config_of(config.model.vit);
    case ModelKind::evolved_transformer:
    case ModelKind::wide_resnet:
    case ModelKind::subnet:
    case ModelKind::supernet:
      break;  // which transformers does not have
  }
  fail(Exit::internal, "a model of no kind");
}

/// Two steps of a small model on data that the program makes, whose tokens are bytes and those behind them.
Config trained(Config config, const std::string& data) {
  config.data.train = {{data, 1}};
  config.data.special = {};
  config.train.steps = 2;
  config.optimizer.rate.peak = 1e-2;
  if (config.model.kind != ModelKind::vit) text_model(config).vocabulary = 260;
  config.model.transformer.first_position = 0;
  return config;
}

Config trained_m2m100() {
  Config config = trained(m2m100_style(), "synthetic:dates");
  config.model.transformer.first_position = config.data.special.padding + 1;  // as M2M100 has it
  return config;
}

Config trained_vit() {
  Config config = trained(vit_style(), "synthetic:shapes");
  vit::Settings& m = config.model.vit;
  m.picture_height = m.picture_width = 32;
  m.patch = 8;
  m.classes = 6;
  return config;
}

std::vector<Config> trained_models() {
  Config tied_llama = llama_style();
  tied_llama.model.gpt.tied = true;
  tied_llama.model.gpt.rotary_base = 5000;
  std::vector<Config> all;
  for (const Config& style : {gpt2_style(), llama_style(), tied_llama})
    all.push_back(trained(style, "synthetic:arithmetic"));
  all.push_back(trained(bert_style(), "synthetic:arithmetic"));
  for (const Tables tables : {Tables::one, Tables::two, Tables::three})
    all.push_back(trained(marian_style(tables), "synthetic:dates"));
  all.push_back(trained_m2m100());
  all.push_back(trained_vit());
  return all;
}

/// Trains in a directory, which gets what transformers needs beside the weights there, and samples. The loss
/// of those, by our own hands.
double loss_of_run(Config config, const Folder& folder) {
  config.run.dir = folder / "run";
  write_file(folder / "train.yaml", to_yaml(config));
  EXPECT_TRUE(runs(std::string(MINDPIPE_BINARY) + " --config " + (folder / "train.yaml")));
  config = resolve(config);
  Worker worker(config, {});
  read_weights_of_run(worker);
  const Batches batches = random_batches(config, 1, 6);
  std::vector<TensorToStore> stored;
  add_fields(stored, batches);
  write_safetensors(config.run.dir + "/input.safetensors", model_settings(config), stored);
  write_file(config.run.dir + "/config.json", transformers_config(config).dump());
  return Feeder(worker, batches).step(0, 0).loss;
}

TEST(Transformers, ReadsRunDirectoriesAndFindsTheirLosses) {
  const std::string python = peer_python_with("torch, numpy, transformers");
  if (python.empty())
    GTEST_SKIP() << "no interpreter that imports transformers (make test-peers installs it in .venv-peers; "
                    "MINDPIPE_PEER_PYTHON names another)";
  const std::vector<Config> models = trained_models();
  std::vector<double> losses;
  std::deque<Folder> folders;
  std::string command = "'" + python + "' '" + MINDPIPE_SOURCE_DIR + "/tests/oracle/loss_by_transformers.py'";
  for (const Config& config : models) {
    const Folder& folder = folders.emplace_back();
    losses.push_back(loss_of_run(config, folder));
    command += " '" + (folder / "run") + "'";
  }
  ASSERT_TRUE(runs(command + " > '" + (folders[0] / "losses") + "'", false));
  std::istringstream found(read_file(folders[0] / "losses"));
  for (std::size_t i = 0; i < models.size(); ++i) {
    std::string name;
    double loss = 0;
    ASSERT_TRUE(found >> name >> loss) << "model " << i;
    EXPECT_NEAR(loss, losses[i], 1e-6 * losses[i]) << name;
    fmt::print("{}: loss {:.9f}, ours is {:.1e} away\n", name, loss, losses[i] - loss);
  }
}

}  // namespace
}  // namespace mindpipe
