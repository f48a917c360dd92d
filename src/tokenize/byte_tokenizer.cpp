#include "tokenize/byte_tokenizer.h"

#include "core/check.h"

namespace mindpipe {

namespace {

constexpr std::string_view end_text = "<end>";

/// Appends bytes as they are: the end of a text has no text of its own.
class ByteEncoder final : public Encoder {
 public:
  void append(std::string_view text, SpecialText, std::vector<TokenId>& ids) override {
    ids.reserve(ids.size() + text.size());
    for (const char letter : text) ids.push_back(static_cast<unsigned char>(letter));
  }
};

}  // namespace

std::vector<TokenId> ByteTokenizer::ids_of(std::string_view text) { return ByteEncoder().encode(text); }

std::string ByteTokenizer::text_of(std::span<const TokenId> ids) {
  return ByteTokenizer().decode(ids, false);
}

std::unique_ptr<Encoder> ByteTokenizer::encoder() const { return std::make_unique<ByteEncoder>(); }

std::string ByteTokenizer::decode(std::span<const TokenId> ids, bool with_special) const {
  std::string text;
  text.reserve(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    check_id(ids[i], i, *this);
    if (ids[i] != end_of_text) text += static_cast<char>(ids[i]);
    else if (with_special) text += end_text;
  }
  return text;
}

NamedTokens ByteTokenizer::special() const {
  NamedTokens named;
  named.end = end_of_text;
  return named;
}

std::optional<TokenId> ByteTokenizer::id_of(std::string_view token) const {
  if (token == end_text) return end_of_text;
  if (token.size() == 1) return static_cast<unsigned char>(token.front());
  return std::nullopt;
}

std::string ByteTokenizer::token_text(TokenId id) const {
  check_id(id, 0, *this);
  return id == end_of_text ? std::string(end_text) : std::string(1, static_cast<char>(id));
}

Sha256::Digest ByteTokenizer::digest() const {
  Sha256 sha;
  sha.add(word.data(), word.size());
  return sha.end();
}

}  // namespace mindpipe
