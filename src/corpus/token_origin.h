#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tokenize/tokenizer.h"

namespace mindpipe {

/// What PREFIX.json says of a pair of token files: which tokenizer made the tokens, and what they were made
/// of.
struct TokenOrigin {
  std::string tokenizer, hash;  ///< a name for people, and the SHA-256 of its files
  std::int64_t vocabulary = 0, documents = 0, tokens = 0;
  std::int64_t counted = -1;  ///< answers alone: tokens that count; -1: all do
  std::vector<std::string> sources{};
};

/// Writes PREFIX.json beside a pair.
void write_origin(const std::string& prefix, const TokenOrigin& origin);
/// What PREFIX.json says; none where a pair has none, as those of other programs.
std::optional<TokenOrigin> read_origin(const std::string& prefix);

/// A tokenizer's digest in hexadecimal digits.
std::string hash_of(const Tokenizer& tokenizer);
/// Refuses the tokens of a pair that another tokenizer made than the run's, of which name and hash are given.
void require_tokens_of(const std::string& prefix, const std::string& tokenizer, const std::string& hash);

}  // namespace mindpipe
