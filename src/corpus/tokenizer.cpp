#include "corpus/tokenizer.h"

#include "core/check.h"

namespace mindpipe {

std::vector<std::int32_t> ByteTokenizer::encode(std::string_view text) {
  std::vector<std::int32_t> tokens(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) tokens[i] = static_cast<unsigned char>(text[i]);
  return tokens;
}

std::string ByteTokenizer::decode(std::span<const std::int32_t> tokens) {
  std::string text;
  text.reserve(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    MP_REQUIRE(tokens[i] >= 0 && tokens[i] <= end_of_text, Exit::bad_data,
               "token {} is {} (expected 0 to 256: a byte or the end of a text); decode it with the "
               "tokenizer that made it",
               i, tokens[i]);
    if (tokens[i] != end_of_text) text += static_cast<char>(tokens[i]);
  }
  return text;
}

}  // namespace mindpipe
