#include "tokenize/vocabulary.h"

#include <array>

#include "core/check.h"
#include "tokenize/utf8.h"

namespace mindpipe {

namespace {

/// Letters of all bytes, and bytes of all letters (-1: a letter of none).
struct Letters {
  std::array<std::string, 256> of_byte;
  std::array<std::int16_t, 512> byte_of;
  Letters() {
    byte_of.fill(-1);
    char32_t next = 256;
    for (int byte = 0; byte < 256; ++byte) {
      const bool printable =
          (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff);
      const char32_t code = printable ? static_cast<char32_t>(byte) : next++;
      append_utf8(code, of_byte[static_cast<std::size_t>(byte)]);
      byte_of[code] = static_cast<std::int16_t>(byte);
    }
  }
};

const Letters& letters() {
  static const Letters all;
  return all;
}

}  // namespace

Vocabulary::Vocabulary(const Json& ids_of_texts) {
  MP_REQUIRE(ids_of_texts.is_object(), Exit::bad_data, "the vocabulary is no object of texts and ids");
  ids_.reserve(ids_of_texts.size());
  for (const auto& [text, id] : ids_of_texts.items()) {
    MP_REQUIRE(id.is_number_integer(), Exit::bad_data, "the id of the token '{}' is {} (expected an integer)",
               text, id.dump().substr(0, 80));
    const auto number = id.get<std::int64_t>();
    MP_REQUIRE(number >= 0 && number < most_tokens, Exit::bad_data,
               "the id of the token '{}' is {} (expected 0 to {})", text, number, most_tokens - 1);
    add(text, static_cast<TokenId>(number));
  }
}

Vocabulary::Vocabulary(const std::vector<std::string>& texts) {
  ids_.reserve(texts.size());
  for (std::size_t id = 0; id < texts.size(); ++id) add(texts[id], static_cast<TokenId>(id));
}

void Vocabulary::add(const std::string& text, TokenId id) {
  MP_REQUIRE(id >= 0 && id < most_tokens, Exit::bad_data, "the id of the token '{}' is {} (expected 0 to {})",
             text, id, most_tokens - 1);
  const auto [place, is_new] = ids_.emplace(text, id);
  if (!is_new && place->second == id) return;
  MP_REQUIRE(is_new, Exit::bad_data,
             "two tokens have the text '{}', {} and {}; a text can be only one of them", text, place->second,
             id);
  if (id >= size()) texts_.resize(static_cast<std::size_t>(id) + 1);
  const std::string*& own = texts_[static_cast<std::size_t>(id)];
  MP_REQUIRE(own == nullptr, Exit::bad_data, "the id {} has two tokens, '{}' and '{}'; give each its own", id,
             *own, text);
  own = &place->first;
}

std::optional<TokenId> Vocabulary::id_of(std::string_view text) const {
  const auto found = ids_.find(text);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

const std::string* Vocabulary::text_of(TokenId id) const {
  return id >= 0 && id < size() ? texts_[static_cast<std::size_t>(id)] : nullptr;
}

const std::string& letter_of_byte(unsigned char byte) { return letters().of_byte[byte]; }

std::string bytes_of_letters(std::string_view token) {
  std::string bytes;
  for (std::string_view rest = token; !rest.empty();) {
    const Character letter = first_character(rest);
    if (letter.bytes == 0 || letter.code >= letters().byte_of.size() || letters().byte_of[letter.code] < 0)
      return std::string(token);
    bytes += static_cast<char>(letters().byte_of[letter.code]);
    rest.remove_prefix(letter.bytes);
  }
  return bytes;
}

}  // namespace mindpipe
