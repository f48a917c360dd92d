#include "tokenize/added_tokens.h"

#include "tokenize/unicode.h"

namespace mindpipe {

namespace {

/// The begin of the last character of a text that is not empty.
std::size_t begin_of_last(std::string_view text) {
  std::size_t at = text.size() - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) --at;
  return at;
}

bool is_in_word(char32_t code) {
  static const Pattern word(R"(\w)");
  Matcher matcher;
  std::string text;
  append_utf8(code, text);
  return word.find(text, 0, matcher).has_value();
}

bool ends_with_word(std::string_view text) {
  return !text.empty() && is_in_word(first_character(text.substr(begin_of_last(text))).code);
}
bool starts_with_word(std::string_view text) {
  return !text.empty() && is_in_word(first_character(text).code);
}

std::size_t begin_of_spaces(std::string_view text) {
  while (!text.empty()) {
    const std::size_t last = begin_of_last(text);
    if (!is_white_space(first_character(text.substr(last)).code)) break;
    text = text.substr(0, last);
  }
  return text.size();
}

std::size_t spaces_at_begin(std::string_view text) {
  std::size_t bytes = 0;
  while (bytes < text.size()) {
    const Character character = first_character(text.substr(bytes));
    if (!is_white_space(character.code)) break;
    bytes += character.bytes;
  }
  return bytes;
}

}  // namespace

void TokenFinder::add(const AddedToken& token, const std::string& text) {
  if (text.empty()) return;
  std::size_t node = 0;
  for (const char letter : text) {
    const auto [place, is_new] = nodes_[node].next.emplace(letter, static_cast<std::int32_t>(nodes_.size()));
    node = static_cast<std::size_t>(place->second);
    if (is_new) nodes_.emplace_back();
  }
  if (nodes_[node].token >= 0) return;  // the first of two that are written alike is found
  nodes_[node].token = static_cast<std::int32_t>(tokens_.size());
  tokens_.push_back(token);
  begins_[static_cast<unsigned char>(text.front())] = true;
}

std::pair<std::int32_t, std::size_t> TokenFinder::longest_at(std::string_view text, std::size_t at) const {
  std::pair<std::int32_t, std::size_t> longest{-1, at};
  for (std::size_t node = 0; at < text.size(); ++at) {
    const auto next = nodes_[node].next.find(text[at]);
    if (next == nodes_[node].next.end()) break;
    node = static_cast<std::size_t>(next->second);
    if (nodes_[node].token >= 0) longest = {nodes_[node].token, at + 1};
  }
  return longest;
}

std::vector<TokenFinder::Part> TokenFinder::parts(std::string_view text, SpecialText special) const {
  std::vector<Part> parts;
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (!begins_[static_cast<unsigned char>(text[at])]) {
      ++at;
      continue;
    }
    const auto [index, found_end] = longest_at(text, at);
    if (index < 0) {
      ++at;
      continue;
    }
    std::size_t begin = at, end = found_end;
    at = found_end;
    const AddedToken& token = tokens_[static_cast<std::size_t>(index)];
    if (token.special && special == SpecialText::plain) continue;
    if (token.single_word && (ends_with_word(text.substr(0, begin)) || starts_with_word(text.substr(end))))
      continue;
    if (token.lstrip) begin = std::max(begin_of_spaces(text.substr(0, begin)), done);
    if (token.rstrip) end += spaces_at_begin(text.substr(end));
    if (done < begin) parts.push_back({-1, done, begin});
    parts.push_back({token.id, begin, end});
    done = end;
  }
  if (done < text.size()) parts.push_back({-1, done, text.size()});
  return parts;
}

}  // namespace mindpipe
