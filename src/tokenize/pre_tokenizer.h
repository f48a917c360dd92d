#pragma once
#include <memory>
#include <string>

#include "tokenize/json_fields.h"
#include "tokenize/pattern.h"
#include "tokenize/scratch.h"

namespace mindpipe {

/// Splits a text into the words that the model sees one by one.
class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  /// Hands the parts of a piece, which has to be UTF-8 and not empty, to `sink`; their texts live until it
  /// returns.
  virtual void split(const TextPiece& piece, Matcher& matcher, PieceSink& sink) const = 0;
  /// Whether the model sees bytes, which the vocabulary writes as letters.
  virtual bool makes_bytes() const { return false; }
};

/// What becomes of the text that a pattern matches.
enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

/// The pre-tokenizer that a tokenizer.json describes; one that is not built is refused by its name.
std::unique_ptr<PreTokenizer> make_pre_tokenizer(const Json& described);

/// The pattern by which GPT-2 splits text.
extern const std::string gpt2_pattern;

}  // namespace mindpipe
