#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tokenize/json_fields.h"
#include "tokenize/tokenizer.h"

namespace mindpipe {

/// Lets a map of texts be asked by a view.
struct HashOfText {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};
using IdOfText = std::unordered_map<std::string, TokenId, HashOfText, std::equal_to<>>;

/// Texts of tokens and their ids, as a tokenizer's file writes them.
class Vocabulary {
 public:
  static constexpr TokenId most_tokens = 1 << 24;

  Vocabulary() = default;
  explicit Vocabulary(const Json& ids_of_texts);
  explicit Vocabulary(const std::vector<std::string>& texts);

  /// A token more; two texts of one id, or two ids of one text, are refused.
  void add(const std::string& text, TokenId id);
  std::optional<TokenId> id_of(std::string_view text) const;
  /// The token's text; nothing for an id that has none.
  const std::string* text_of(TokenId id) const;
  TokenId size() const { return static_cast<TokenId>(texts_.size()); }  ///< one more than the largest id

 private:
  IdOfText ids_;
  std::vector<const std::string*> texts_;
};

/// The letter by which byte-level vocabularies write a byte, as UTF-8: printable bytes stand for themselves.
const std::string& letter_of_byte(unsigned char byte);
/// The bytes that a token of a byte-level vocabulary writes; the token itself where a letter stands for no
/// byte.
std::string bytes_of_letters(std::string_view token);

}  // namespace mindpipe
