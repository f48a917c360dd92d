#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mindpipe {

/// Tokenizer of one token a byte: ids 0 to 255 are the bytes; 256, where the vocabulary has it, ends a text.
struct ByteTokenizer {
  static constexpr std::int32_t end_of_text = 256;
  static std::vector<std::int32_t> encode(std::string_view text);
  /// Bytes of the tokens; an end of text adds nothing, and an id beyond it is refused.
  static std::string decode(std::span<const std::int32_t> tokens);
};

}  // namespace mindpipe
