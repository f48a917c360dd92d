#include "tokenize/tokenizer.h"

#include "core/check.h"
#include "tokenize/utf8.h"

namespace mindpipe {

std::vector<TokenId> Encoder::encode(std::string_view text, SpecialText special) {
  std::vector<TokenId> ids;
  append(text, special, ids);
  return ids;
}

TemplatedIds Tokenizer::with_template(std::span<const TokenId> ids) const {
  return {{ids.begin(), ids.end()}, std::vector<std::int32_t>(ids.size(), 0)};
}

TemplatedIds Tokenizer::with_template(std::span<const TokenId> first, std::span<const TokenId> second) const {
  TemplatedIds pair = with_template(first);
  pair.ids.insert(pair.ids.end(), second.begin(), second.end());
  pair.types.resize(pair.ids.size(), 1);
  return pair;
}

void check_id(TokenId id, std::size_t place, const Tokenizer& tokenizer) {
  MP_REQUIRE(id >= 0 && id < tokenizer.vocabulary(), Exit::bad_data,
             "token {} is {}, and the tokenizer {} has the ids 0 to {}; decode it with the tokenizer that "
             "made it",
             place, id, tokenizer.name(), tokenizer.vocabulary() - 1);
}

std::string StreamDecoder::add(TokenId id) {
  recent_.push_back(id);
  const std::string text = tokenizer_.decode(recent_, with_special_);
  if (text.size() <= printed_bytes_ || ends_within_character(text)) return "";
  std::string fresh = text.substr(printed_bytes_);
  // Tokens before these ids stay among the recent ones, since a decoder may treat the first token otherwise
  // than others.
  recent_.erase(recent_.begin(), recent_.begin() + static_cast<std::ptrdiff_t>(printed_ids_));
  printed_ids_ = recent_.size();
  printed_bytes_ = tokenizer_.decode(recent_, with_special_).size();
  return fresh;
}

std::string StreamDecoder::finish() {
  const std::string text = tokenizer_.decode(recent_, with_special_);
  std::string rest = text.size() > printed_bytes_ ? text.substr(printed_bytes_) : "";
  recent_.clear();
  printed_ids_ = 0;
  printed_bytes_ = 0;
  return rest;
}

}  // namespace mindpipe
