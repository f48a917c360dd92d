#pragma once
#include <cstddef>
#include <string_view>

#include "tokenize/tokenizer.h"

namespace mindpipe {

/// Where a long text can be cut so that its pieces have the tokens of the whole: an import reads and encodes
/// texts in pieces, and its memory does not grow with them.
class TextCuts {
 public:
  /// Bytes of a usual piece, and the most that become tokens at once where a text cannot be cut.
  static constexpr std::size_t piece = std::size_t{1} << 18, longest_whole = std::size_t{4} << 20;

  /// What a refusal says of a text that has more.
  static constexpr std::string_view why_too_long =
      "one document has more than 4 MiB and no line or word at which its tokens could be cut; make several "
      "documents of it (--format paragraphs, or JSON lines)";

  /// Cuts where a tokenizer's tokens never reach over the begin of a line or of a word, as far as some texts
  /// show.
  explicit TextCuts(const Tokenizer& tokenizer);
  /// Cuts before lines and words, as every pattern does that tokenizers are trained with.
  TextCuts() : at_lines_(true), at_words_(true) {}

  /// The last place where a text can be cut; 0: nowhere.
  std::size_t last(std::string_view text) const;
  /// The bytes of the first piece of a text; 0: it would have more than `longest_whole`.
  std::size_t next(std::string_view text) const;

 private:
  bool anywhere_ = false, at_lines_, at_words_;
};

}  // namespace mindpipe
