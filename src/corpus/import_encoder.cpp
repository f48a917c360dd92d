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

std::string RawDocument::place(const std::vector<ImportFile>& files) const {
  const std::string& path = files[file].path;
  return line > 0 ? fmt::format("{}: line {}", path, line) : path;
}

ImportEncoder::ImportEncoder(const ImportRules& rules, const Tokenizer& tokenizer,
                             const std::vector<ImportFile>& files, const TextCuts& cuts)
    : rules_(rules), tokenizer_(tokenizer), files_(files), cuts_(cuts), encoder_(tokenizer.encoder()) {
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

void ImportEncoder::add(std::string_view text, bool is_markup, std::vector<TokenId>& ids) {
  encoder_->append(text, is_markup || rules_.special_tokens ? SpecialText::tokens : SpecialText::plain, ids);
}

/// Encodes a text piece by piece: the ids of a long one take more memory than the text.
void ImportEncoder::encode_text(std::string_view text, const RawDocument& document, const Take& take) {
  bool begins = document.begins, ends = false;
  do {
    const std::size_t count = cuts_.next(text);
    MP_REQUIRE(count > 0 || text.empty(), Exit::bad_data, "{}: {}", document.place(files_),
               TextCuts::why_too_long);
    ends = count == text.size();
    EncodedDocument encoded;
    encoded.is_empty = text.empty();
    encoded.ends = ends && document.ends;
    if (begins) encoded.ids = before_;
    begins = false;
    add(text.substr(0, count), false, encoded.ids);
    text.remove_prefix(count);
    if (encoded.ends) {
      encoded.ids.insert(encoded.ids.end(), behind_.begin(), behind_.end());
      if (rules_.end_of_text) encoded.ids.push_back(*end_);
    }
    take(std::move(encoded));
  } while (!ends);
}

EncodedDocument ImportEncoder::encode_pair(const RawDocument& document) {
  const std::optional<SidesOfPair> sides = sides_of_pair(files_[document.file].path, document);
  EncodedDocument encoded;
  encoded.is_empty = !sides;
  if (!sides) return encoded;
  add(sides->source, false, encoded.ids);
  add(sides->target, false, encoded.targets);
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

void ImportEncoder::encode(RawDocument document, const Take& take) {
  const ImportFile& file = files_[document.file];
  const bool is_text = file.format != TextFormat::pairs && !rules_.answers;
  MP_REQUIRE(is_text || document.text.size() <= TextCuts::longest_whole, Exit::bad_data,
             "{}: the line has more than 4 MiB, and a {} is one sample; shorten it", document.place(files_),
             rules_.answers ? "conversation" : "pair");
  if (!is_text) return take(rules_.answers ? encode_answers(document) : encode_pair(document));
  if (file.format != TextFormat::jsonl) return encode_text(document.text, document, take);
  const JsonDocument json(file.path, document.line, document.text);
  document.text = std::string();
  encode_text(json.text_at(rules_.key), document, take);
}

}  // namespace mindpipe
