#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "corpus/token_writer.h"

namespace mindpipe {

/// Tokens as other programs write them, without an index: 16-bit numbers alone (nanoGPT), 16- or 32-bit
/// numbers behind a head of 1,024 bytes (llm.c), or an array of NumPy (.npy). They are read as they are; what
/// ends a document is a token.
class RawTokens {
 public:
  /// Reads the head. `vocabulary`: of the tokenizer that is said to have made them; 0: not known.
  RawTokens(const std::string& path, std::int64_t vocabulary);

  /// The type to write them in.
  TokenType type() const;
  /// Adds all tokens to `writer`; a document ends behind each token `end`, or with the file.
  void copy_to(TokenWriter& writer, std::optional<std::int32_t> end) const;

 private:
  void read_head_of_llm_c();
  void read_head_of_numpy();

  std::string path_;
  std::int64_t vocabulary_, begin_ = 0;  ///< begin_: bytes before the first token
  TokenType type_ = TokenType::u16;
  bool is_unsigned_32_ = false;  ///< 32-bit numbers whose highest values are no tokens
  std::int64_t count_ = -1;      ///< tokens, the head says; -1: it says nothing
};

}  // namespace mindpipe
