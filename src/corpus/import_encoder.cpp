#include "corpus/import_encoder.h"

#include <algorithm>

#include "core/check.h"
#include "corpus/json_document.h"

namespace mindpipe {

std::optional<SidesOfPair> sides_of_pair(const std::string& path, const RawDocument& document) {
  std::string_view line = document.text;
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.empty()) return std::nullopt;
  const std::size_t tab = line.find('\t');
  MP_REQUIRE(tab != std::string_view::npos, Exit::bad_data,
             "{}: line {}: there is no tab (a line is a source, a tab, and its target)", path, document.line);
  return SidesOfPair{line.substr(0, tab), line.substr(tab + 1)};
}

ImportEncoder::ImportEncoder(const ImportRules& rules, const Tokenizer& tokenizer,
                             const std::vector<ImportFile>& files)
    : rules_(rules), tokenizer_(tokenizer), files_(files), encoder_(tokenizer.encoder()) {
  if (!rules.chat_template.empty()) template_.emplace(rules.chat_template);
  end_ = tokenizer.special().end;
  MP_REQUIRE(end_ || !rules.end_of_text, Exit::usage,
             "the tokenizer {} has no token that ends a text; leave --end-of-text out", tokenizer.name());
  if (!rules.template_tokens) return;
  constexpr TokenId document = -1;
  const std::vector<TokenId> within = tokenizer.with_template(std::vector<TokenId>{document}).ids;
  const auto at = std::find(within.begin(), within.end(), document);
  before_.assign(within.begin(), at);
  behind_.assign(at == within.end() ? at : at + 1, within.end());
  MP_REQUIRE(!before_.empty() || !behind_.empty(), Exit::usage,
             "the tokenizer {} has no template of tokens around a text; leave --template-tokens out",
             tokenizer.name());
}

void ImportEncoder::add(const std::string& text, bool is_markup, std::vector<TokenId>& ids) {
  encoder_->append(text, is_markup || rules_.special_tokens ? SpecialText::tokens : SpecialText::plain, ids);
}

EncodedDocument ImportEncoder::encode_text(const std::string& text, bool begins, bool ends) {
  EncodedDocument encoded;
  encoded.is_empty = text.empty();
  encoded.ends = ends;
  if (begins) encoded.ids = before_;
  add(text, false, encoded.ids);
  if (ends) {
    encoded.ids.insert(encoded.ids.end(), behind_.begin(), behind_.end());
    if (rules_.end_of_text) encoded.ids.push_back(*end_);
  }
  return encoded;
}

EncodedDocument ImportEncoder::encode_pair(const RawDocument& document) {
  const std::optional<SidesOfPair> sides = sides_of_pair(files_[document.file].path, document);
  EncodedDocument encoded;
  encoded.is_empty = !sides;
  if (!sides) return encoded;
  add(std::string(sides->source), false, encoded.ids);
  add(std::string(sides->target), false, encoded.targets);
  return encoded;
}

EncodedDocument ImportEncoder::encode_answers(const RawDocument& document) {
  const JsonDocument json(files_[document.file].path, document.line, document.text);
  const std::vector<Message> messages = json.messages(rules_.prompt_key, rules_.answer_key);
  EncodedDocument encoded;
  encoded.is_empty = messages.empty();
  const auto count = [&](bool counts) { encoded.counts.resize(encoded.ids.size(), counts ? 1 : 0); };
  if (template_) {
    try {
      for (const ChatPart& part : template_->parts(messages)) {
        add(part.text, part.is_markup, encoded.ids);
        count(part.counts);
      }
    } catch (const Error& error) {
      fail(error.code, "{}: line {}: {}", json.path(), json.line(), error.what());
    }
  } else {
    MP_REQUIRE(!json.object().contains("messages"), Exit::usage,
               "{}: line {}: messages need a template, which says how roles are written; name one: "
               "--template chatml, "
               "llama3 or a file",
               json.path(), json.line());
    for (const Message& message : messages) {
      add(message.text, false, encoded.ids);
      count(message.role == "assistant");
    }
  }
  if (end_ && (!template_ || rules_.end_of_text)) {
    encoded.ids.push_back(*end_);
    count(true);
  }
  return encoded;
}

EncodedDocument ImportEncoder::encode(const RawDocument& document) {
  const ImportFile& file = files_[document.file];
  if (file.format == TextFormat::pairs) return encode_pair(document);
  if (file.format != TextFormat::jsonl) return encode_text(document.text, document.begins, document.ends);
  if (rules_.answers) return encode_answers(document);
  const JsonDocument json(file.path, document.line, document.text);
  return encode_text(json.text_at(rules_.key), true, true);
}

}  // namespace mindpipe
