#pragma once
#include <string>
#include <string_view>

#include "core/check.h"
#include "tokenize/utf8.h"

namespace mindpipe {

bool is_white_space(char32_t code);  ///< Unicode's White_Space, which U+180E is not
// What follows is told as by the library tokenizers, whose tables are older (see older_unicode.h).
bool is_punctuation(char32_t code);  ///< category P, and what ASCII has of punctuation and symbols
bool is_mark(char32_t code);         ///< category M
bool is_nonspacing_mark(char32_t code);
bool is_number(char32_t code);   ///< category N
bool is_control(char32_t code);  ///< what BERT takes out of a text: category C but for unassigned characters
void append_lower(char32_t code, std::string& text);

enum class NormalForm { nfc, nfd, nfkc, nfkd };
/// The text, which has to be UTF-8, in a normal form.
std::string normalized(std::string_view text, NormalForm form);

/// Calls `take` with every character of a text, which has to be UTF-8, and with its bytes.
template <class Take>
void for_each_character(std::string_view text, Take take) {
  while (!text.empty()) {
    const Character character = first_character(text);
    MP_CHECK(character.bytes > 0, "a text that is no UTF-8 was to be read by characters");
    take(character.code, text.substr(0, character.bytes));
    text.remove_prefix(character.bytes);
  }
}

}  // namespace mindpipe
