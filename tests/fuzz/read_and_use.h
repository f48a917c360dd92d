#pragma once
#include <array>

#include "fuzz/fuzz.h"
#include "tokenize/tokenizer.h"

namespace mindpipe {

/// Reads a tokenizer and lets it turn texts into ids, which have to be below its vocabulary, and back.
inline void read_and_use(const std::string& path) {
  static constexpr std::array<std::string_view, 4> texts{
      "", "The cat's 1234  hats\r\n\t", " <s>\u00e9\u0301 \u4f60\u597d\uff0c \U0001f469\u200d\U0001f467 a b",
      "\xff\xc0\xaf\xe2\x82 x"};
  const auto tokenizer = load_tokenizer(path);
  const auto encoder = tokenizer->encoder();
  for (const std::string_view text : texts) {
    const auto ids = encoder->encode(text);
    for (const TokenId id : ids)
      MP_CHECK(id >= 0 && id < tokenizer->vocabulary(), "id {} of {}", id, tokenizer->vocabulary());
    tokenizer->decode(ids, true);
    tokenizer->with_template(ids, ids);
  }
}

}  // namespace mindpipe
