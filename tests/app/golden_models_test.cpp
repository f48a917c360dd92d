#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "app/changed_models.h"
#include "app/run/weights_source.h"
#include "corpus/files.h"
#include "runtime/generator.h"

// Small random models that transformers has written (tests/golden/transformers, by
// tests/oracle/golden_models.py), and the losses that it finds.
namespace mindpipe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(GoldenModels, HaveTheLossesAndLogitsOfTransformersForOneTwoAndFourShards) {
  for (const std::string& name : golden_models())
    for (const int shards : {1, 2, 4}) {
      const std::string directory = golden_folder + name;
      const Config config = imported(directory, shards);
      Worker worker(config, {});
      begin_with_weights(worker);
      expect_as_in(SafetensorsFile(directory + "/expected.safetensors"), worker, batch_in(directory, config),
                   fmt::format("{}, {} shards", name, shards));
    }
}

TEST(GoldenModels, ContinueTextsWithTheLogitsOfTransformers) {
  int continue_texts = 0;
  for (const std::string& name : golden_models()) {
    const std::string directory = golden_folder + name;
    const Config config = imported(directory);
    Worker worker(config, {});
    if (!worker.stage().model().continuation()) continue;
    ++continue_texts;
    begin_with_weights(worker);
    const Batches batches = batch_in(directory, config);
    std::vector<float> all;
    for (std::int64_t sample = 0; sample < batches.batch; ++sample) {
      Generator generator(config, worker);
      for (int row = 0; row < config.data.sequence; ++row) {
        const auto logits = generator.append({batches.numbers(field::tokens, sample)[row]});
        all.insert(all.end(), logits.begin(), logits.end());
      }
    }
    const SafetensorsFile expected(directory + "/expected.safetensors");
    EXPECT_LE(largest_difference(all, expected.floats("logits")), 1e-4) << name;
  }
  EXPECT_GE(continue_texts, 6);
}

TEST(GoldenModels, AreWrittenBackBitForBit) {
  for (const std::string& name : golden_models()) {
    const std::string directory = golden_folder + name;
    const LooseTensors theirs = tensors_of_directory(directory);
    const Folder folder;
    Config config = imported(directory);
    const bool halves = theirs.begin()->second.type == StoredType::bf16;
    config.exported.precision = halves ? Precision::bf16 : Precision::f32;
    Worker worker(config, {});
    begin_with_weights(worker);
    save_weights_for_others(worker, folder / "");
    const std::string prefix = worker.stage().model().file_names().prefix;
    const LooseTensors ours = tensors_of_directory(folder / "");
    for (const auto& [tensor, loose] : ours) {
      auto found = theirs.find(tensor);
      if (found == theirs.end() && tensor.starts_with(prefix))
        found = theirs.find(tensor.substr(prefix.size()));
      ASSERT_NE(found, theirs.end()) << name << ": " << tensor;
      EXPECT_EQ(loose.type, found->second.type) << tensor;
      EXPECT_EQ(loose.shape, found->second.shape) << tensor;
      EXPECT_TRUE(loose.bytes == found->second.bytes) << name << ": " << tensor;
    }
    EXPECT_EQ(ours.size(), name == "bert_for_pretraining" ? theirs.size() - 4 : theirs.size()) << name;
  }
}

std::string without(const std::string& prefix, const std::string& name) {
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}
std::string replaced(std::string name, const std::string& from, const std::string& to) {
  const std::size_t at = name.find(from);
  return at == name.npos ? name : name.replace(at, from.size(), to);
}

TEST(GoldenModels, AreReadByTheNamesOfOldFiles) {
  const std::map<std::string, std::string> prefixes{{"gpt2", "transformer."},
                                                    {"llama", "model."},
                                                    {"bert", "bert."},
                                                    {"marian", "model."},
                                                    {"vit", "vit."}};
  for (const auto& [name, prefix] : prefixes) {
    const Folder folder;
    expect_the_same(changed_model(name, folder,
                                  [&](LooseTensors& made, const std::string& tensor, const Loose& loose) {
                                    const std::string bare = without(prefix, tensor);
                                    made[replaced(replaced(bare, "LayerNorm.weight", "LayerNorm.gamma"),
                                                  "LayerNorm.bias", "LayerNorm.beta")] = loose;
                                  }),
                    name);
  }
}

TEST(GoldenModels, AreReadBesideBuffersAndTablesThatStandTwice) {
  const std::map<std::string, std::map<std::string, std::string>> besides{
      {"gpt2",
       {{"transformer.h.0.attn.bias", ""},
        {"transformer.h.1.attn.masked_bias", ""},
        {"lm_head.weight", "transformer.wte.weight"}}},
      {"llama", {{"model.layers.0.self_attn.rotary_emb.inv_freq", ""}}},
      {"bert",
       {{"bert.embeddings.position_ids", ""},
        {"bert.pooler.dense.weight", ""},
        {"cls.seq_relationship.bias", ""},
        {"cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"},
        {"cls.predictions.decoder.bias", "cls.predictions.bias"}}},
      {"marian",
       {{"model.encoder.embed_positions.weight", ""},
        {"lm_head.weight", "model.shared.weight"},
        {"model.decoder.embed_tokens.weight", "model.shared.weight"}}}};
  for (const auto& [name, more] : besides) {
    const Folder folder;
    expect_the_same(changed_model(name, folder,
                                  [&](LooseTensors& made, const std::string& tensor, const Loose& loose) {
                                    made[tensor] = loose;
                                    for (const auto& [second, first] : more) {
                                      if (first == tensor) made[second] = loose;
                                      if (first.empty())
                                        made[second] = {StoredType::boolean, {2}, std::vector<std::byte>(2)};
                                    }
                                  }),
                    name);
  }
}

TEST(GoldenModels, AreReadFromASecondNameAlone) {
  const Folder folder;
  expect_the_same(changed_model("marian", folder,
                                [](LooseTensors& made, const std::string& tensor, const Loose& loose) {
                                  made[replaced(tensor, "model.shared", "model.decoder.embed_tokens")] =
                                      loose;
                                }),
                  "marian");
}

TEST(GoldenModels, AreReadFromPartsWithAnIndex) {
  const Folder folder;
  LooseTensors parts[2];
  nlohmann::json map;
  int turn = 0;
  for (const auto& [tensor, loose] : tensors_in(golden_folder + "gpt2/model.safetensors")) {
    parts[turn % 2][tensor] = loose;
    map[tensor] = fmt::format("model-0000{}-of-00002.safetensors", turn % 2 + 1);
    ++turn;
  }
  write(parts[0], folder / "model-00001-of-00002.safetensors");
  write(parts[1], folder / "model-00002-of-00002.safetensors");
  write_file(folder / "model.safetensors.index.json", nlohmann::json{{"weight_map", map}}.dump());
  Config config = imported(golden_folder + "gpt2");
  config.run.weights = folder / "";
  expect_the_same(config, "gpt2");
}

TEST(GoldenModels, AreRefusedWithTheTensorsThatDoNotFit) {
  const Folder folder;
  const auto refusal = [&](auto change) {
    return refusal_of_weights(changed_model("llama", folder, change), Exit::bad_data);
  };
  EXPECT_THAT(
      refusal([](LooseTensors& made, const std::string& tensor, const Loose& loose) {
        if (!tensor.starts_with("model.layers.1.self_attn")) made[tensor] = loose;
      }),
      HasSubstr("has no model.layers.1.self_attn.k_proj.weight, model.layers.1.self_attn.o_proj.weight, "
                "model.layers.1.self_attn.q_proj.weight and 1 more, which the model"));
  EXPECT_THAT(
      refusal([](LooseTensors& made, const std::string& tensor, const Loose& loose) {
        made[tensor] = loose;
        made["model.layers.7.mlp.up_proj.weight"] = loose;
      }),
      HasSubstr("has model.layers.7.mlp.up_proj.weight, which the model of this configuration has not"));
  EXPECT_THAT(refusal([](LooseTensors& made, const std::string& tensor, Loose loose) {
                if (tensor == "model.norm.weight") loose.shape = {4, 4};
                made[tensor] = loose;
              }),
              HasSubstr("model.norm.weight ([4, 4] there, [16] in the model)"));
  EXPECT_THAT(refusal([](LooseTensors& made, const std::string& tensor, const Loose& loose) {
                made[tensor] = loose;
                if (tensor == "model.norm.weight") made["norm.weight"] = loose;
              }),
              HasSubstr("has model.norm.weight twice"));
  EXPECT_THAT(refusal([](LooseTensors& made, const std::string& tensor, Loose loose) {
                if (tensor == "model.norm.weight") loose.type = StoredType::i32;
                made[tensor] = loose;
              }),
              HasSubstr("model.norm.weight is of type I32 (weights are F32, F16 or BF16)"));
}

TEST(GoldenModels, AreRefusedWhereTwoNamesOfATableDiffer) {
  for (const auto& [model, first, second] :
       {std::tuple{"gpt2", "transformer.wte.weight", "lm_head.weight"},
        {"marian", "model.shared.weight", "model.decoder.embed_tokens.weight"},
        {"bert", "cls.predictions.bias", "cls.predictions.decoder.bias"}}) {
    const Folder folder;
    const Config config =
        changed_model(model, folder, [&](LooseTensors& made, const std::string& tensor, const Loose& loose) {
          made[tensor] = loose;
          if (tensor != first) return;
          made[second] = loose;
          made[second].bytes.back() ^= std::byte{1};
        });
    EXPECT_THAT(refusal_of_weights(config, Exit::bad_data),
                AllOf(HasSubstr(first), HasSubstr(second), HasSubstr(" differ, which are one tensor")));
  }
}

TEST(GoldenModels, AreRefusedWithTwoBasesOfTheirPositions) {
  const Folder folder;
  nlohmann::json json = nlohmann::json::parse(read_file(golden_folder + "mistral/config.json"));
  for (const double other : {10000.0, 500000.0}) {
    json["rope_theta"] = 10000.0;
    json["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", other}};
    write_file(folder / "config.json", json.dump());
    if (other == 10000.0) EXPECT_NO_THROW(their_model(folder / "config.json"));
    else
      expect_error(Exit::bad_configuration, "rope_theta is 10000.0 and rope_parameters.rope_theta 500000.0",
                   [&] { their_model(folder / "config.json"); });
  }
}

TEST(GoldenModels, AreWrittenWhateverIsDroppedInTraining) {
  Config config = imported(golden_folder + "qwen3");
  block_model(config).dropout = 0.1;
  EXPECT_TRUE(config_json(config).json.has_value()) << config_json(config).why_none;
}

TEST(GoldenModels, AreRefusedWithPartsThatAreNotThere) {
  const Folder folder;
  Config config = imported(golden_folder + "llama");
  config.run.weights = folder / "";
  EXPECT_THAT(refusal_of_weights(config, Exit::input_missing),
              HasSubstr("has neither model.safetensors nor"));
  const auto refusal = [&](const std::string& index, Exit code) {
    write_file(folder / "model.safetensors.index.json", index);
    return refusal_of_weights(config, code);
  };
  EXPECT_THAT(refusal(R"({"weight_map": {"a": "model-1.safetensors"}})", Exit::bad_data),
              HasSubstr("the part model-1.safetensors is missing"));
  for (const char* outside : {"../x.safetensors", "/etc/passwd", "a/b", "..", ""})
    EXPECT_THAT(refusal(fmt::format(R"({{"weight_map": {{"a": "{}"}}}})", outside), Exit::bad_data),
                HasSubstr("lies outside the directory"));
  EXPECT_THAT(refusal("{\"weight_map\": {\"a\": \"model\\u0000.safetensors\"}}", Exit::bad_data),
              HasSubstr("which no file can be called"));
  EXPECT_THAT(refusal(R"({"weight_map": []})", Exit::bad_data), HasSubstr("has no weight_map"));
  EXPECT_THAT(refusal(R"({"weight_map": {"a": 3}})", Exit::bad_data), HasSubstr("is in no file by name"));
  EXPECT_THAT(refusal(R"({"weight_map": {"a": "x"}, "weight_map": {}})", Exit::bad_data), HasSubstr("twice"));
}

/// Files that were damaged at random: each is read, or refused with a sentence.
TEST(GoldenModels, SurviveDamagedFiles) {
  std::mt19937 random(3);
  const std::string whole = read_file(golden_folder + "marian/model.safetensors");
  const Folder folder;
  Config config = imported(golden_folder + "marian");
  config.run.weights = folder / "model.safetensors";
  Worker worker(config, {});
  for (int i = 0; i < 400; ++i) {
    std::string bytes = whole;
    const std::size_t header = 8 + (i % 4 == 0 ? bytes.size() - 8 : bytes.find('}', 200));
    for (int change = 0; change <= i % 3; ++change) bytes[random() % header] = static_cast<char>(random());
    if (i % 7 == 0) bytes.resize(random() % bytes.size());
    write_file(config.run.weights, bytes);
    try {
      begin_with_weights(worker);
    } catch (const Error& error) {
      EXPECT_EQ(error.code, Exit::bad_data) << error.what();
    }
  }
}

}  // namespace
}  // namespace mindpipe
