#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenize/tokenizer.h"

namespace mindpipe {

/// Tokenizer of one token a byte: ids 0 to 255 are the bytes, and 256 ends a text.
class ByteTokenizer final : public Tokenizer {
 public:
  static constexpr TokenId end_of_text = 256;
  static constexpr std::string_view word = "bytes";  ///< names it where a path may stand
  static std::vector<TokenId> ids_of(std::string_view text);
  /// Bytes of the ids; an end of text adds nothing, and an id beyond it is refused.
  static std::string text_of(std::span<const TokenId> ids);

  std::unique_ptr<Encoder> encoder() const override;
  std::string decode(std::span<const TokenId> ids, bool with_special) const override;
  TokenId vocabulary() const override { return end_of_text + 1; }
  NamedTokens special() const override;
  bool is_special(TokenId id) const override { return id == end_of_text; }
  std::optional<TokenId> id_of(std::string_view token) const override;
  std::string token_text(TokenId id) const override;
  std::string name() const override { return std::string(word); }
  Sha256::Digest digest() const override;
  std::vector<TokenizerFile> files() const override { return {}; }
};

}  // namespace mindpipe
