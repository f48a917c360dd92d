#include "tokenize/tokenizer_json.h"

#include <filesystem>

#include "core/check.h"
#include "core/input_file.h"
#include "core/mapped_file.h"
#include "tokenize/byte_pairs.h"
#include "tokenize/component_tokenizer.h"
#include "tokenize/of_file.h"
#include "tokenize/word_piece.h"

namespace mindpipe {

namespace {

std::vector<TextPair> pairs_of(const Json& merges) {
  std::vector<TextPair> pairs;
  pairs.reserve(merges.size());
  for (const Json& merge : merges) {
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      pairs.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
      continue;
    }
    const std::string text = merge.is_string() ? merge.get<std::string>() : "";
    const std::size_t space = text.find(' ');
    MP_REQUIRE(space != std::string::npos && text.find(' ', space + 1) == std::string::npos, Exit::bad_data,
               "merge {} is {} (expected two tokens)", pairs.size() + 1, merge.dump().substr(0, 80));
    pairs.emplace_back(text.substr(0, space), text.substr(space + 1));
  }
  return pairs;
}

std::unique_ptr<WordModel> make_byte_pairs(const Json& model, bool of_bytes) {
  const Json* dropout = value_of(model, "dropout");
  MP_REQUIRE(
      dropout == nullptr || *dropout == 0, Exit::bad_data,
      "the model's dropout is {}, which is not built: equal texts would have other ids; set it to null",
      dropout->dump());
  BytePairOptions options;
  options.of_bytes = of_bytes;
  options.byte_fallback = bool_of(model, "byte_fallback", false);
  options.ignore_merges = bool_of(model, "ignore_merges", false);
  options.fuse_unknown = bool_of(model, "fuse_unk", false);
  options.unknown = text_of(model, "unk_token", "");
  options.prefix = text_of(model, "continuing_subword_prefix", "");
  options.suffix = text_of(model, "end_of_word_suffix", "");
  MP_REQUIRE(
      !of_bytes || (options.prefix.empty() && options.suffix.empty()), Exit::bad_data,
      "continuing_subword_prefix and end_of_word_suffix beside ByteLevel are not built; leave them out");
  const Json* vocab = value_of(model, "vocab");
  MP_REQUIRE(vocab != nullptr, Exit::bad_data, "the model has no 'vocab'");
  Vocabulary vocabulary(*vocab);
  MergeTable merges = merges_of(pairs_of(list_of(model, "merges")), vocabulary, options.prefix);
  return std::make_unique<BytePairs>(std::move(vocabulary), std::move(merges), std::move(options));
}

std::unique_ptr<WordModel> make_word_pieces(const Json& model) {
  const Json* vocab = value_of(model, "vocab");
  MP_REQUIRE(vocab != nullptr, Exit::bad_data, "the model has no 'vocab'");
  const std::int64_t longest = number_of(model, "max_input_chars_per_word", 100);
  MP_REQUIRE(longest > 0, Exit::bad_data, "max_input_chars_per_word is {} (expected 1 or more)", longest);
  return std::make_unique<WordPiece>(Vocabulary(*vocab), text_of(model, "unk_token", "[UNK]"),
                                     text_of(model, "continuing_subword_prefix", "##"),
                                     static_cast<std::size_t>(longest));
}

std::unique_ptr<WordModel> make_model(const Json& whole, bool of_bytes) {
  const Json* model = value_of(whole, "model");
  MP_REQUIRE(model != nullptr, Exit::bad_data, "there is no 'model'; name a tokenizer.json");
  std::string type = text_of(*model, "type", "");
  if (type.empty()) type = value_of(*model, "merges") != nullptr ? "BPE" : "WordPiece";
  if (type == "BPE") return make_byte_pairs(*model, of_bytes);
  if (type == "WordPiece") return make_word_pieces(*model);
  MP_REQUIRE(type != "Unigram", Exit::bad_data,
             "the model Unigram is not read from JSON; use the .model file of the same tokenizer");
  fail(Exit::bad_data, "the model {} is not built; there are BPE and WordPiece", type);
}

std::vector<AddedToken> added_tokens_of(const Json& whole) {
  std::vector<AddedToken> added;
  if (value_of(whole, "added_tokens") == nullptr) return added;
  for (const Json& one : list_of(whole, "added_tokens")) {
    AddedToken token;
    const std::int64_t id = number_of(one, "id", -1);
    token.text = text_of(one, "content");
    MP_REQUIRE(id >= 0 && id < Vocabulary::most_tokens, Exit::bad_data,
               "the id of the added token '{}' is {}", token.text, id);
    token.id = static_cast<TokenId>(id);
    token.special = bool_of(one, "special", false);
    token.single_word = bool_of(one, "single_word", false);
    token.lstrip = bool_of(one, "lstrip", false);
    token.rstrip = bool_of(one, "rstrip", false);
    token.normalized = bool_of(one, "normalized", !token.special);
    added.push_back(std::move(token));
  }
  return added;
}

/// Puts what a tokenizer_config.json names ("eos_token": "</s>", or an object with its content) over the
/// usual names.
void take_names(const Json& settings, const Tokenizer& tokenizer, NamedTokens& named) {
  const auto take = [&](const char* key, std::optional<TokenId>& id) {
    const Json* value = value_of(settings, key);
    if (value == nullptr) return;
    const std::string text = value->is_string() ? value->get<std::string>() : text_of(*value, "content", "");
    if (const auto found = tokenizer.id_of(text)) id = found;
  };
  take("eos_token", named.end);
  take("bos_token", named.start);
  take("pad_token", named.padding);
  take("mask_token", named.mask);
  take("unk_token", named.unknown);
}

Components components_of(const Json& whole) {
  Components parts;
  if (const Json* normalizer = value_of(whole, "normalizer")) parts.normalizer = make_normalizer(*normalizer);
  if (const Json* splits = value_of(whole, "pre_tokenizer"))
    parts.pre_tokenizer = make_pre_tokenizer(*splits);
  parts.model = make_model(whole, parts.pre_tokenizer && parts.pre_tokenizer->makes_bytes());
  parts.added = added_tokens_of(whole);
  if (const Json* around = value_of(whole, "post_processor")) parts.around = make_template(*around);
  if (const Json* decoder = value_of(whole, "decoder")) parts.decoder = make_decoder(*decoder);
  parts.named = usual_names(parts.model->vocabulary(), parts.added);
  return parts;
}

std::string beside(const std::string& path, const std::string& name) {
  return (std::filesystem::path(path).parent_path() / name).string();
}

/// GPT-2's components, as JSON describes them.
Components gpt2_components(std::unique_ptr<WordModel> model) {
  Components parts;
  parts.pre_tokenizer = make_pre_tokenizer({{"type", "ByteLevel"}, {"add_prefix_space", false}});
  parts.decoder = make_decoder({{"type", "ByteLevel"}});
  parts.model = std::move(model);
  // The vocabulary alone says that there is an end of text.
  if (const auto end = parts.model->vocabulary().id_of("<|endoftext|>"))
    parts.added.push_back({*end, "<|endoftext|>", false, false, false, false, true});
  parts.named = usual_names(parts.model->vocabulary(), parts.added);
  return parts;
}

std::vector<std::string_view> lines_of(const MappedFile& file) {
  std::vector<std::string_view> lines;
  std::string_view text(reinterpret_cast<const char*>(file.data()), static_cast<std::size_t>(file.size()));
  while (!text.empty()) {
    const std::size_t end = std::min(text.size(), text.find('\n'));
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  return lines;
}

std::vector<TextPair> read_merges(const std::string& path) {
  const MappedFile file(path, largest_tokenizer);
  std::vector<TextPair> pairs;
  std::size_t number = 0;
  for (const std::string_view line : lines_of(file)) {
    ++number;
    if (line.starts_with("#version") || line.empty()) continue;
    const std::size_t space = line.find(' ');
    MP_REQUIRE(space != std::string_view::npos && space > 0 && space + 1 < line.size() &&
                   line.find(' ', space + 1) == std::string_view::npos,
               Exit::bad_data, "{}: line {} is '{}' (expected two tokens and a space between)", path, number,
               line.substr(0, 80));
    pairs.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  return pairs;
}

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer_json(const std::string& path) {
  return of_file(path, [&] {
    Components parts = components_of(read_tokens_json(path));
    std::vector<TokenizerFile> files{{path, "tokenizer.json"}};
    const std::string settings = beside(path, "tokenizer_config.json");
    if (file_is_there(settings)) {
      files.push_back({settings, "tokenizer_config.json"});
      NamedTokens named = parts.named;
      const ComponentTokenizer unnamed(std::move(parts), {});
      take_names(read_tokens_json(settings), unnamed, named);
      parts = components_of(read_tokens_json(path));
      parts.named = named;
    }
    return std::make_unique<ComponentTokenizer>(std::move(parts), source_of(path, std::move(files)));
  });
}

std::unique_ptr<Tokenizer> load_vocabulary_and_merges(const std::string& vocabulary_path) {
  const std::string merges_path = beside(vocabulary_path, "merges.txt");
  MP_REQUIRE(file_is_there(merges_path), Exit::input_missing,
             "{}: there is no merges.txt beside it, without which its tokens cannot be found; copy it there",
             vocabulary_path);
  return of_file(vocabulary_path, [&] {
    Vocabulary vocabulary(read_tokens_json(vocabulary_path));
    const auto pairs = read_merges(merges_path);
    MergeTable merges = of_file(merges_path, [&] { return merges_of(pairs, vocabulary, ""); });
    BytePairOptions options;
    options.of_bytes = true;
    Components parts = gpt2_components(
        std::make_unique<BytePairs>(std::move(vocabulary), std::move(merges), std::move(options)));
    return std::make_unique<ComponentTokenizer>(
        std::move(parts),
        source_of(vocabulary_path, {{vocabulary_path, "vocab.json"}, {merges_path, "merges.txt"}}));
  });
}

std::unique_ptr<Tokenizer> load_word_pieces(const std::string& path) {
  return of_file(path, [&] {
    const MappedFile file(path, largest_tokenizer);
    std::vector<std::string> tokens;
    for (const std::string_view line : lines_of(file)) tokens.emplace_back(line);
    Vocabulary vocabulary(tokens);
    Components parts;
    parts.normalizer = make_normalizer({{"type", "BertNormalizer"}, {"lowercase", !is_cased(vocabulary)}});
    parts.pre_tokenizer = make_pre_tokenizer({{"type", "BertPreTokenizer"}});
    parts.decoder = make_decoder({{"type", "WordPiece"}});
    for (const char* name : {"[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"})
      if (const auto id = vocabulary.id_of(name))
        parts.added.push_back({*id, name, false, false, false, false, true});
    const auto start = vocabulary.id_of("[CLS]"), end = vocabulary.id_of("[SEP]");
    MP_REQUIRE(start && end, Exit::bad_data,
               "there is no [CLS] or no [SEP] in it; name the vocab.txt of a BERT");
    parts.around = bert_template(*start, *end);
    parts.model = std::make_unique<WordPiece>(std::move(vocabulary), "[UNK]", "##", 100);
    parts.named = usual_names(parts.model->vocabulary(), parts.added);
    return std::make_unique<ComponentTokenizer>(std::move(parts), source_of(path, {{path, "vocab.txt"}}));
  });
}

}  // namespace mindpipe
