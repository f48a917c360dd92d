#include "config/tokens.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "config/config.h"
#include "config/settings.h"
#include "core/check.h"
#include "tokenize/for_transformers.h"

namespace mindpipe {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view vocabulary_key = "model.vocabulary", special_section = "data.special.";

void say(const Setting& setting, const std::string& text) {
  Node node;
  node.kind = Node::Kind::text;
  node.text = text;
  node.where = "data.tokenizer";
  setting.read(node);
}

bool follows(const Setting& setting) {
  return setting.key() == vocabulary_key || setting.key().starts_with(special_section);
}

bool is_auto(const Setting& setting) { return follows(setting) && setting.written() == "auto"; }

/// Whether a tokenizer may stand at a path, behind which a pattern may follow (FILE.tiktoken:cl100k).
bool is_there(const std::string& path) {
  std::error_code none;
  return path == "bytes" || fs::exists(path, none) || fs::exists(path.substr(0, path.rfind(':')), none);
}

/// The id of a special token; one that the tokenizer lacks is taken from another that can stand for it, and
/// else lies outside the vocabulary, where whoever needs it refuses it.
TokenId special_id(const NamedTokens& named, std::string_view key, TokenId vocabulary) {
  const std::optional<TokenId> end = named.end ? named.end : named.padding;
  if (key == "end") return end.value_or(vocabulary);
  if (key == "start")
    return named.start ? *named.start : named.padding ? *named.padding : end.value_or(vocabulary);
  if (key == "padding") return named.padding ? *named.padding : end.value_or(vocabulary);
  return named.mask.value_or(vocabulary);
}

std::string hash_of_files(const Tokenizer& tokenizer) { return to_string(tokenizer.digest()); }

}  // namespace

void follow_tokenizer(Config& config) {
  if (config.data.tokenizer.empty()) return;
  for (const Setting& setting : settings_of(config))
    if (follows(setting)) say(setting, "auto");
}

void fill_in_tokens(Config& config) {
  DataConfig& data = config.data;
  if (data.tokenizer.empty()) {
    const SpecialTokens bytes;
    for (const auto& [id, usual] : {std::pair{&data.special.end, bytes.end},
                                    {&data.special.start, bytes.start},
                                    {&data.special.padding, bytes.padding},
                                    {&data.special.mask, bytes.mask}})
      if (*id < 0) *id = usual;
    return;
  }
  if (!is_there(data.tokenizer) && is_there(tokenizer_copy_of(config.run)))
    data.tokenizer = tokenizer_copy_of(config.run);
  const std::vector<Setting> settings = settings_of(config);
  const bool is_known =
      !data.tokenizer_hash.empty() && std::none_of(settings.begin(), settings.end(), is_auto);
  if (is_known) return;
  const std::unique_ptr<Tokenizer> tokenizer = open_tokenizer(data);
  data.tokenizer_hash = hash_of_files(*tokenizer);
  const TokenId vocabulary = tokenizer->vocabulary();
  const NamedTokens named = tokenizer->special();
  for (const Setting& setting : settings) {
    if (!follows(setting)) continue;
    if (!is_auto(setting)) {
      MP_REQUIRE(
          setting.key() != vocabulary_key || std::stoll(setting.written()) >= vocabulary,
          Exit::bad_configuration,
          "model.vocabulary is {}, and the tokenizer {} has {} tokens; set it to auto, or to {} or more",
          setting.written(), data.tokenizer, vocabulary, vocabulary);
    } else if (setting.key() == vocabulary_key) {
      say(setting, fmt::format("{}", vocabulary));
    } else {
      say(setting,
          fmt::format("{}", special_id(named, setting.key().substr(special_section.size()), vocabulary)));
    }
  }
}

std::string auto_without_tokenizer(Config config) {
  if (!config.data.tokenizer.empty()) return "";
  for (const Setting& setting : settings_of_kind(config, config.model.kind))  // the others know no tokens
    if (is_auto(setting)) return setting.key();
  return "";
}

std::unique_ptr<Tokenizer> open_tokenizer(const DataConfig& data) {
  std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(data.tokenizer.empty() ? "bytes" : data.tokenizer);
  const std::string hash = hash_of_files(*tokenizer);
  MP_REQUIRE(data.tokenizer_hash.empty() || data.tokenizer_hash == hash, Exit::bad_configuration,
             "data.tokenizer is {}, whose SHA-256 is {}, and data.tokenizer_hash is {}: the file has "
             "changed; name the "
             "tokenizer that the run began with",
             data.tokenizer, hash.substr(0, 16), data.tokenizer_hash.substr(0, 16));
  return tokenizer;
}

std::string tokenizer_copy_of(const RunConfig& run) { return run.dir + "/tokenizer"; }

void keep_tokenizer(const Config& config) {
  const std::string folder = tokenizer_copy_of(config.run);
  if (config.data.tokenizer.empty() || config.data.tokenizer == folder) return;
  std::error_code problem;
  const std::unique_ptr<Tokenizer> tokenizer = open_tokenizer(config.data);
  for (const TokenizerFile& file : tokenizer->files()) {
    fs::create_directories(folder, problem);
    fs::copy_file(file.path, folder + "/" + file.name, fs::copy_options::overwrite_existing, problem);
    MP_REQUIRE(
        !problem, Exit::io_error,
        "{}: the tokenizer cannot be copied to {}/{} ({}); take away what stands there, or make room in "
        "run.dir",
        file.path, folder, file.name, problem.message());
  }
  const std::string settings = settings_for_transformers(*tokenizer),
                    path = folder + "/" + kept_tokenizer_settings;
  fs::remove(path, problem);
  if (settings.empty()) return;
  std::ofstream file(path);
  file << settings;
  file.close();
  MP_REQUIRE(file.good(), Exit::io_error, "{}: writing failed; make room in run.dir", path);
}

void require_kept_tokenizer(const Config& config) {
  const std::string kept = tokenizer_copy_of(config.run);
  std::error_code none;
  if (!fs::exists(kept, none)) return;
  const std::string there = hash_of_files(*load_tokenizer(kept)),
                    here = hash_of_files(*open_tokenizer(config.data));
  MP_REQUIRE(there == here, Exit::bad_configuration,
             "{} was trained with the tokenizer {} (SHA-256 {}), and data.tokenizer is {} (SHA-256 {}); name "
             "the one "
             "that it was trained with",
             config.run.dir, kept, there.substr(0, 16),
             config.data.tokenizer.empty() ? "bytes" : config.data.tokenizer, here.substr(0, 16));
}

}  // namespace mindpipe
