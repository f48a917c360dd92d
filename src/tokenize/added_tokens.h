#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tokenize/normalizer.h"
#include "tokenize/tokenizer.h"

namespace mindpipe {

/// A token that is found in the text before the model sees it.
struct AddedToken {
  TokenId id = 0;
  std::string text;
  bool single_word = false;  ///< only where no word touches it
  bool lstrip = false;       ///< takes the white space before it
  bool rstrip = false;       ///< takes the white space behind it
  bool normalized = true;    ///< is looked for in the normalized text
  bool special = false;
};

/// Finds added tokens in a text: the leftmost, of these the longest.
class TokenFinder {
 public:
  /// Part of a text: an added token, or (id -1) what stands between two.
  struct Part {
    TokenId id = -1;
    std::size_t begin = 0, end = 0;
  };

  void add(const AddedToken& token, const std::string& text);
  bool empty() const { return tokens_.empty(); }
  /// The parts of a text, in order. Special tokens are passed over where they are plain text.
  std::vector<Part> parts(std::string_view text, SpecialText special) const;

 private:
  struct Node {
    std::unordered_map<char, std::int32_t> next;
    std::int32_t token = -1;
  };
  /// The longest token at a place, and where it ends; -1 where there is none.
  std::pair<std::int32_t, std::size_t> longest_at(std::string_view text, std::size_t at) const;

  std::vector<AddedToken> tokens_;
  std::vector<Node> nodes_{1};
  std::array<bool, 256> begins_{};
};

}  // namespace mindpipe
