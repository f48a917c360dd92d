#include "tokenize/for_transformers.h"

#include <array>
#include <nlohmann/json.hpp>

#include "tokenize/word_piece.h"

namespace mindpipe {
namespace {

/// The class of transformers that reads a file; "" where it takes more than the file to tell.
std::string class_for(const std::string& file) {
  constexpr std::array<std::pair<std::string_view, const char*>, 3> classes{
      {{"tokenizer.json", "PreTrainedTokenizerFast"},
       {"vocab.json", "GPT2Tokenizer"},
       {"vocab.txt", "BertTokenizer"}}};
  for (const auto& [name, its_class] : classes)
    if (file == name) return its_class;
  return "";
}

}  // namespace

std::string settings_for_transformers(const Tokenizer& tokenizer) {
  std::string reader;
  for (const TokenizerFile& file : tokenizer.files()) {
    if (file.name == "tokenizer_config.json") return "";
    if (reader.empty()) reader = class_for(file.name);
  }
  if (reader.empty()) return "";
  nlohmann::ordered_json json{{"tokenizer_class", reader}};
  const NamedTokens named = tokenizer.special();
  for (const auto& [key, id] : {std::pair{"eos_token", named.end},
                                {"bos_token", named.start},
                                {"pad_token", named.padding},
                                {"mask_token", named.mask},
                                {"unk_token", named.unknown}})
    if (id) json[key] = tokenizer.token_text(*id);
  if (reader == "BertTokenizer") json["do_lower_case"] = !is_cased(tokenizer);
  return json.dump(2) + "\n";
}

}  // namespace mindpipe
