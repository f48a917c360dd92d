#include "config/models/architectures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <sstream>

#include "config/config.h"
#include "config/settings.h"
#include "core/text.h"

// What a config.json of transformers means. Those in tests/golden/transformers were written by transformers
// (tests/oracle/golden_models.py).
namespace mindpipe {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using testing::AllOf;
using testing::HasSubstr;

const fs::path their_files = MINDPIPE_SOURCE_DIR "/tests/golden/transformers";

std::string contents_of(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

/// Reads a config.json that is written for it alone.
TheirModel model_of_text(const std::string& text) {
  const fs::path file = fs::temp_directory_path() / fmt::format("mindpipe_{}_config.json", ::getpid());
  std::ofstream(file, std::ios::binary) << text;
  struct Removal {
    fs::path file;
    ~Removal() { fs::remove(file); }
  } removal{file};
  return their_model(file);
}

std::string refusal_of_json(const std::string& text) {
  try {
    model_of_text(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::bad_configuration) << error.what();
    return error.what();
  }
  return "accepted";
}

/// The configuration that a model's settings make.
Config settings_from(const TheirModel& model) {
  Config config;
  config.model.kind = model.kind;
  for (const Setting& setting : settings_of(config))
    for (const auto& [key, value] : model.settings)
      if (setting.key() == key) setting.read(parse_document(value, key, false));
  return resolve(config);
}

std::vector<std::string> their_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(their_files)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

Json their_json(const std::string& name) {
  return Json::parse(contents_of(their_files / name / "config.json"));
}

TEST(Architectures, AreWrittenAsTheyWereRead) {
  for (const std::string& name : their_names()) {
    SCOPED_TRACE(name);
    const Json theirs = their_json(name);
    const TheirModel model = model_of_text(theirs.dump());
    const WrittenModel written = config_json(settings_from(model));
    ASSERT_TRUE(written.json) << written.why_none;
    const Json ours = Json::parse(*written.json);
    const TheirModel again = model_of_text(ours.dump());
    EXPECT_EQ(to_yaml(settings_from(again)), to_yaml(settings_from(model)));
    const std::set<std::string> said_otherwise{"architectures", "model_type", "n_inner",
                                               "activation_function"};
    int compared = 0;
    for (const auto& [key, value] : theirs.items())
      if (ours.contains(key) && !said_otherwise.contains(key)) {
        EXPECT_EQ(ours[key], value) << key;
        ++compared;
      }
    EXPECT_GE(compared, 9);
  }
}

TEST(Architectures, HaveTheSizesOfTheFile) {
  const Config llama = settings_from(model_of_text(their_json("llama").dump()));
  const gpt::Settings& m = llama.model.gpt;
  EXPECT_EQ(m.layers, 2);
  EXPECT_EQ(m.width, 16);
  EXPECT_EQ(m.head_width, 8);
  EXPECT_EQ(m.rotary_base, 500);
  EXPECT_EQ(m.rotary_scaling, RotaryScaling::llama3);
  EXPECT_EQ(m.rotary_high, 3);
  EXPECT_EQ(m.rotary_context, 8);
  const Config marian = settings_from(model_of_text(their_json("marian").dump()));
  EXPECT_EQ(marian.model.transformer.decoder_layers, 1);
  EXPECT_EQ(marian.data.special.padding, 1);
  const Config m2m100 = settings_from(model_of_text(their_json("m2m100").dump()));
  EXPECT_EQ(m2m100.model.transformer.first_position, 2) << "the place behind that of padding";
  const Config vit = settings_from(model_of_text(their_json("vit").dump()));
  EXPECT_EQ(vit.model.vit.classes, 7);
  EXPECT_EQ(vit.model.vit.picture_width, 12);
}

/// The file with another value at a path of the table; nothing where no other one is known.
std::optional<Json> changed(Json json, const TheirKey& key) {
  const std::string path = key.theirs.substr(0, key.theirs.find_first_of("| "));
  if (path.ends_with('#')) {
    json[path.substr(0, path.size() - 1)]["7"] = "one more";
    return json;
  }
  Json* at = &json;
  std::istringstream steps(path);
  for (std::string step; std::getline(steps, step, '.');)
    at = all_digits(step) ? &(*at)[std::stoul(step)] : &(*at)[step];
  if (at->is_number_integer()) *at = 2 * at->get<int>() + (*at == 0 ? 1 : 0);
  else if (at->is_number()) *at = 0.5 * at->get<double>() + 0.25;
  else if (at->is_boolean()) *at = !at->get<bool>();
  else *at = "something_else";
  return json;
}

TEST(Architectures, EveryKeyOfTheTableCounts) {
  for (const std::string& name : their_names()) {
    const TheirModel model = model_of_text(their_json(name).dump());
    const Config config = settings_from(model);
    const Json written = Json::parse(*config_json(config).json);
    for (const Architecture& one : architectures_of(config)) {
      if (one.kind != model.kind || written["architectures"][0] != one.name) continue;
      for (const TheirKey& key : one.keys) {
        if (key.theirs.empty()) continue;
        const std::optional<Json> other = changed(written, key);
        try {
          EXPECT_TRUE(to_yaml(settings_from(model_of_text(other->dump()))) != to_yaml(config))
              << name << ": " << key.theirs;
        } catch (const Error& error) {
          EXPECT_EQ(error.code, Exit::bad_configuration);
        }
      }
    }
  }
}

TEST(Architectures, RefuseWhatIsNotBuilt) {
  const auto with = [](const std::string& name, const std::string& key, const Json& value) {
    Json json = their_json(name);
    json[key] = value;
    return refusal_of_json(json.dump());
  };
  EXPECT_THAT(with("gpt2", "architectures", {"GPT2ForTokenClassification"}),
              HasSubstr("config.json: names the architecture GPT2ForTokenClassification, which is not built "
                        "(built: GPT2LMHeadModel, LlamaForCausalLM"));
  EXPECT_THAT(with("gpt2", "activation_function", "mish"),
              HasSubstr("activation_function is mish, which is not built (built: gelu_new"));
  EXPECT_THAT(with("gpt2", "n_head", 5), HasSubstr("model.heads is 5 and model.width 16"));
  EXPECT_THAT(with("gpt2", "n_embd", -1), HasSubstr("n_embd: model.width is '-1'; allowed: a whole number"));
  EXPECT_THAT(with("gpt2", "n_embd", "wide"), HasSubstr("model.width is 'wide'; allowed"));
  EXPECT_THAT(with("llama", "rope_parameters", {{"rope_type", "yarn"}, {"rope_theta", 1e4}}),
              HasSubstr("rope_scaling.rope_type is yarn, which is not built (built: default; llama3)"));
  EXPECT_THAT(with("llama", "attention_bias", true), HasSubstr("attention_bias, mlp_bias is true false"));
  EXPECT_THAT(with("mistral", "sliding_window", 4096), HasSubstr("sliding_window is 4096, which is not"));
  EXPECT_THAT(with("qwen2", "layer_types", {"full_attention", "sliding_attention"}),
              HasSubstr("layer_types is [\"full_attention\",\"sliding_attention\"], which is not built"));
  EXPECT_THAT(with("marian", "decoder_attention_heads", 2),
              HasSubstr("encoder_attention_heads is 4 and decoder_attention_heads 2"));
  for (const char* size : {"null", R"({"height":8,"width":8})", "[]", "[8]", "[8,8,8]", "\"8\"", "true",
                           "[null,8]", "[8,null]", "[{},8]", "[[8,8],8]"})
    EXPECT_THAT(with("vit", "image_size", Json::parse(size)),
                HasSubstr(fmt::format("image_size is {} (expected a number, or a list of two)", size)));
  EXPECT_THAT(with("vit", "image_size", {8, -8}), HasSubstr("image_size.1: model.picture_width is '-8'"));
  EXPECT_THAT(with("vit", "patch_size", nullptr), HasSubstr("patch_size: model.patch is 'null'; allowed"));
  EXPECT_THAT(with("vit", "id2label", Json::array({1, 2})),
              HasSubstr("id2label is [1,2] (expected a mapping)"));
  EXPECT_THAT(with("llama", "rope_scaling", "linear"),
              HasSubstr("rope_scaling is \"linear\" (expected a mapping)"));
  EXPECT_THAT(with("qwen3", "rope_parameters", {{"full_attention", {{"rope_theta", 1e4}}}}),
              HasSubstr("rope_parameters.full_attention is {\"rope_theta\":10000.0}, which is not built"));
  for (const char* at : {"rope_parameters", "rope_scaling"})
    EXPECT_THAT(with("mistral", at, {{"partial_rotary_factor", 0.5}}),
                HasSubstr("partial_rotary_factor is 0.5, which is not built"));
  EXPECT_THAT(with("vit", "qkv_bias", false), HasSubstr("qkv_bias is false, which is not built"));
  EXPECT_THAT(refusal_of_json("[1, 2]"), HasSubstr("is no object"));
  EXPECT_THAT(refusal_of_json("{}"), HasSubstr("names neither architectures nor a model_type"));
  EXPECT_THAT(refusal_of_json(R"({"model_type": "gpt2", "model_type": "gpt2"})"),
              HasSubstr("the file has the key 'model_type' twice"));
  EXPECT_THAT(refusal_of_json(R"({"n_embd": 1e999})"), AllOf(HasSubstr("number"), HasSubstr("config.json")));
  EXPECT_THAT(refusal_of_json(std::string(5000, '[')), HasSubstr("nested deeper"));
}

TEST(Architectures, TakeNullWhereRealFilesHaveIt) {
  for (const auto& [name, key] : {std::pair{"qwen2", "layer_types"},
                                  {"qwen3", "layer_types"},
                                  {"qwen2", "use_sliding_window"},
                                  {"bert", "pad_token_id"},
                                  {"bert", "position_embedding_type"},
                                  {"llama", "rope_scaling"},
                                  {"vit", "id2label"},
                                  {"gpt2", "n_inner"},
                                  {"marian", "decoder_vocab_size"}}) {
    Json json = their_json(name);
    if (std::string(key) == "id2label") json["num_labels"] = 7;
    json[key] = nullptr;
    EXPECT_EQ(refusal_of_json(json.dump()), "accepted") << name << ": " << key;
  }
  Json json = their_json("bert");
  json["pad_token_id"] = nullptr;
  EXPECT_EQ(settings_from(model_of_text(json.dump())).data.special.padding, 0);
}

TEST(Architectures, TakeThePlacesWhereLlama3SaysItsFirstContext) {
  const auto context = [](const Json& json) {
    return settings_from(model_of_text(json.dump())).model.gpt.rotary_context;
  };
  Json json = their_json("llama");
  const char* key = "original_max_position_embeddings";
  Json& scaling = json.contains("rope_scaling") ? json["rope_scaling"] : json["rope_parameters"];
  EXPECT_EQ(context(json), 8);
  scaling.erase(key);
  EXPECT_EQ(context(json), json["max_position_embeddings"].get<int>()) << "where nothing else is said";
  json[key] = 16;
  EXPECT_EQ(context(json), 16);
  scaling[key] = 8;
  EXPECT_THAT(refusal_of_json(json.dump()), HasSubstr("keep the one that is meant"));
  json.erase(key);
  for (const char* needed : {"factor", "low_freq_factor", "high_freq_factor"}) {
    Json without = json;
    (without.contains("rope_scaling") ? without["rope_scaling"] : without["rope_parameters"]).erase(needed);
    EXPECT_THAT(refusal_of_json(without.dump()),
                HasSubstr(std::string(needed) + " is missing, and llama3 needs it"));
  }
}

TEST(Architectures, TakeOneNumberInTwoSpellings) {
  Json json = their_json("mistral");
  json["rope_theta"] = 10000;
  json["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 10000.0}};
  EXPECT_EQ(refusal_of_json(json.dump()), "accepted");
  json["rope_theta"] = 10001;
  EXPECT_THAT(refusal_of_json(json.dump()), HasSubstr("keep the one that is meant"));
}

TEST(Architectures, OfQwenHaveItsVocabulary) {
  for (const char* name : {"qwen2", "qwen3"}) {
    Json json = their_json(name);
    json.erase("vocab_size");
    EXPECT_EQ(settings_from(model_of_text(json.dump())).model.gpt.vocabulary, 151936) << name;
  }
}

TEST(Architectures, NameWhatIsLeftOut) {
  Json json = their_json("gpt2");
  json["embd_pdrop"] = 0.3;
  EXPECT_THAT(model_of_text(json.dump()).left_out,
              AllOf(testing::Contains("embd_pdrop 0.3 (model.dropout is 0.1, as resid_pdrop)"),
                    testing::Contains("summary_type")));
  json = their_json("qwen3");
  json["rope_parameters"] = {
      {"rope_type", "default"}, {"rope_theta", 1e4}, {"mscale", 1}, {"beta_fast", nullptr}};
  EXPECT_THAT(
      model_of_text(json.dump()).left_out,
      AllOf(testing::Contains("rope_parameters.mscale"), testing::Contains("rope_parameters.beta_fast"),
            testing::Not(testing::Contains("rope_parameters.rope_theta"))));
}

TEST(Architectures, AreNoneWhereTransformersHasNoSuchSetting) {
  Config config;
  config.model.gpt.positions = Positions::rotary;
  EXPECT_THAT(config_json(resolve(config)).why_none, HasSubstr("GPT2LMHeadModel has it not that"));
  config.model.kind = ModelKind::wide_resnet;
  EXPECT_EQ(config_json(resolve(config)).why_none, "it has no architecture for a wide_resnet");
}

/// Files that were damaged at random: each is read, or refused with a sentence.
TEST(Architectures, SurviveDamagedFiles) {
  std::mt19937 random(7);
  const auto draw = [&](std::size_t below) { return random() % below; };
  const std::vector<std::string> pieces{"null", "-1",         "1e308", "[]", "{}", "\"\"", "true",
                                        "0.5",  "9999999999", "[[[[",  "}",  "\"", ",",    "\\u0000"};
  for (const std::string& name : their_names())
    for (int i = 0; i < 60; ++i) {
      std::string text = their_json(name).dump(1);
      for (int change = 0; change < 1 + i % 3; ++change) {
        const std::size_t at = draw(text.size());
        const std::size_t end = std::min(text.find_first_of(",\n", at), text.size());
        if (i % 2 == 0) text[at] = static_cast<char>(draw(256));
        else text.replace(at, end - at, pieces[draw(pieces.size())]);
      }
      const std::string said = refusal_of_json(text);
      EXPECT_FALSE(said.empty());
    }
}

}  // namespace
}  // namespace mindpipe
