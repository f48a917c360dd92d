#include "corpus/text_cuts.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "tokenize/byte_tokenizer.h"

namespace mindpipe {
namespace {

/// Whether the tokens of texts are those of their two parts, one behind the other.
bool are_those_of_parts(const Tokenizer& tokenizer,
                        std::initializer_list<std::pair<std::string, std::string>> texts) {
  const auto encoder = tokenizer.encoder();
  const auto ids = [&](const std::string& text) { return encoder->encode(text, SpecialText::plain); };
  return std::all_of(texts.begin(), texts.end(), [&](const auto& text) {
    std::vector<TokenId> both = ids(text.first);
    const std::vector<TokenId> behind = ids(text.second);
    both.insert(both.end(), behind.begin(), behind.end());
    return both == ids(text.first + text.second);
  });
}

/// Whether a letter, a digit or a mark of ASCII, or a character of three bytes that is no space, ends at
/// `end`.
bool ends_in_a_mark(std::string_view text, std::size_t end) {
  if (std::isgraph(static_cast<unsigned char>(text[end - 1])) != 0) return true;
  const std::string_view last = end < 3 ? std::string_view() : text.substr(end - 3, 3);
  return !last.empty() && ((last[0] >= '\xe4' && last[0] <= '\xef') || last == "\u3002");
}

/// Whether a letter or digit begins here: of ASCII, or one of a script whose first byte begins no space.
bool is_letter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || (c >= '\xe4' && c <= '\xed');
}

/// Behind the last end of a line that has no spaces around it; 0: there is none.
std::size_t last_line(std::string_view text) {
  for (std::size_t i = text.size(); i > 2; --i)
    if (text[i - 2] == '\n' && is_letter(text[i - 1]) && ends_in_a_mark(text, i - 2)) return i - 1;
  return 0;
}

/// Before the last space that stands alone between two letters of ASCII; 0: there is none.
std::size_t last_word(std::string_view text) {
  const auto is_ascii_letter = [&](std::size_t at) {
    return std::isalpha(static_cast<unsigned char>(text[at])) != 0;
  };
  for (std::size_t i = text.size(); i > 2; --i)
    if (text[i - 2] == ' ' && is_ascii_letter(i - 1) && is_ascii_letter(i - 3)) return i - 2;
  return 0;
}

}  // namespace

TextCuts::TextCuts(const Tokenizer& tokenizer)
    : anywhere_(tokenizer.name() == ByteTokenizer::word),
      at_lines_(are_those_of_parts(
          tokenizer,
          {{"a word.\n", "Another"}, {"one\n", "two"}, {"1\n", "2"}, {"\n\nx\n", "y z"}, {"(a)\n", "b\n"}})),
      at_words_(are_those_of_parts(
          tokenizer, {{"a word", " another"}, {"of", " the"}, {"don't", " X y"}, {"i", " a"}})) {}

std::size_t TextCuts::last(std::string_view text) const {
  if (anywhere_) return text.size();
  const std::size_t line = at_lines_ ? last_line(text) : 0;
  return line > 0 || !at_words_ ? line : last_word(text);
}

std::size_t TextCuts::next(std::string_view text) const {
  for (std::size_t end = piece; end < text.size(); end += piece) {
    if (const std::size_t cut = last(text.substr(0, end))) return cut;
    if (end >= longest_whole) return 0;
  }
  return text.size();
}

}  // namespace mindpipe
