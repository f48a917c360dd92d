#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tokenize/tokenizer.h"

namespace mindpipe {

/// What a byte-level tokenizer is trained for.
struct TrainingRules {
  TokenId vocabulary = 0;            ///< tokens at most, special ones and bytes among them
  std::vector<std::string> special;  ///< special tokens, which have the first ids
  std::int64_t least_count = 0;      ///< a pair that stands more rarely becomes no token
  std::string pattern = "gpt2";      ///< by which texts are split (see load_tiktoken)
};

}  // namespace mindpipe
