#define PCRE2_CODE_UNIT_WIDTH 8
#include "tokenize/pattern_reader.h"

#include <pcre2.h>

#include <algorithm>
#include <charconv>
#include <memory>

#include "core/check.h"
#include "tokenize/utf8.h"

namespace mindpipe {

namespace {

bool is_letter_or_digit(char letter) {
  return (letter >= '0' && letter <= '9') || ((letter | 0x20) >= 'a' && (letter | 0x20) <= 'z');
}

bool compiles(const std::string& pattern) {
  int error = 0;
  PCRE2_SIZE place = 0;
  const std::unique_ptr<pcre2_code, decltype(&pcre2_code_free)> code(
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), PCRE2_UTF | PCRE2_UCP,
                    &error, &place, nullptr),
      &pcre2_code_free);
  return code != nullptr;
}

}  // namespace

void PatternReader::refuse(const std::string& construct) const {
  fail(Exit::bad_data,
       "the pattern {} has {}, which is not built, since Oniguruma and PCRE2 read it differently; write what "
       "it stands for",
       pattern_, construct);
}

char32_t PatternReader::take_character() {
  const Character character = first_character(rest_);
  require(character.bytes > 0, "bytes that are no UTF-8");
  skip(character.bytes);
  return character.code;
}

std::optional<char32_t> PatternReader::take_hexadecimal(std::size_t begin, std::size_t least,
                                                        std::size_t most) {
  std::uint32_t code = 0;
  const char* first = rest_.data() + std::min(begin, rest_.size());
  const char* last = first + std::min(most, rest_.size() - std::min(begin, rest_.size()));
  const auto [end, error] = std::from_chars(first, last, code, 16);
  const auto digits = static_cast<std::size_t>(end - first);
  if (error != std::errc() || digits < least) return std::nullopt;
  skip(begin + digits);
  return code;
}

std::optional<char32_t> PatternReader::take_code() {
  static constexpr std::string_view letters = "ntrfaev", codes = "\n\t\r\f\a\x1b\v";
  const char letter = peek(1);
  if (rest_.size() < 2) refuse("a backslash at its end");
  if (letter == 'x' && peek(2) == '{') {
    const auto code = take_hexadecimal(3, 1, 8);
    require(code && *code <= 0x10ffff && peek() == '}', "\\x{ without a character");
    skip(1);
    return code;
  }
  if (letter == 'x' || letter == 'u') {
    const auto code = letter == 'x' ? take_hexadecimal(2, 1, 2) : take_hexadecimal(2, 4, 4);
    require(code && (letter == 'u' || *code < 0x80), fmt::format("\\{} without a character", letter));
    return code;
  }
  if (const std::size_t at = letters.find(letter); at != std::string_view::npos) {
    skip(2);
    return static_cast<char32_t>(codes[at]);
  }
  if (is_letter_or_digit(letter)) return std::nullopt;
  skip(1);
  return take_character();
}

std::string PatternReader::take_property(bool ignores_case) {
  const std::size_t end = rest_.find('}');
  require(peek(2) == '{' && end != std::string_view::npos, fmt::format("\\{} without a name", peek(1)));
  std::string name(rest_.substr(3, end - 3));
  const bool is_negated = name.starts_with('^') != (peek(1) == 'P');
  if (name.starts_with('^')) name.erase(0, 1);
  const auto is_named = [](char letter) {
    return is_letter_or_digit(letter) || letter == '_' || letter == ' ' || letter == '-';
  };
  require(!name.empty() && std::all_of(name.begin(), name.end(), is_named), "\\p{" + name + "}");
  require(!ignores_case, "\\p{" + name + "} under (?i)");
  skip(end + 1);
  // A script's name alone stands for its extensions, too, in PCRE2 of 10.40 and later.
  if (name.size() > 2 && compiles("\\p{sc:" + name + "}")) name = "sc:" + name;
  return fmt::format("\\{}{{{}}}", is_negated ? 'P' : 'p', name);
}

std::string written_code(char32_t code) {
  std::string text;
  if (code >= 0x80 || is_letter_or_digit(static_cast<char>(code))) append_utf8(code, text);
  else text = fmt::format("\\x{{{:x}}}", static_cast<std::uint32_t>(code));
  return text;
}

}  // namespace mindpipe
