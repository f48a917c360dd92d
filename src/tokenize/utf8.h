#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mindpipe {

/// A character that begins at a place of a text: its number and how many bytes it takes; 0 bytes where no
/// UTF-8 begins.
struct Character {
  char32_t code = 0;
  std::size_t bytes = 0;
};

/// The character at the text's begin, by the rules of Unicode: no overlong forms, surrogates or numbers
/// beyond U+10FFFF.
Character first_character(std::string_view text);
/// How many bytes at the begin are no UTF-8: 0 where a character begins, else up to where the next one may.
std::size_t invalid_prefix(std::string_view text);
/// Whether the last bytes are the begin of a character whose rest is missing.
bool ends_within_character(std::string_view text);
void append_utf8(char32_t code, std::string& text);
/// How many bytes at the begin are whole characters.
std::size_t valid_prefix(std::string_view text);

}  // namespace mindpipe
