#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tokenize/json_fields.h"
#include "tokenize/tokenizer.h"

namespace mindpipe {

/// What stands around one sequence and around two: BERT's [CLS] and [SEP], or a start of text.
class SequenceTemplate {
 public:
  /// One part: a token, or (sequence 0 or 1) all ids of a sequence.
  struct Part {
    int sequence = -1;
    std::vector<TokenId> ids;
    std::int32_t type = 0;
  };

  SequenceTemplate() = default;  ///< nothing around them: one sequence follows the other
  SequenceTemplate(std::vector<Part> single, std::vector<Part> pair);

  TemplatedIds of(std::span<const TokenId> ids) const;
  TemplatedIds of(std::span<const TokenId> first, std::span<const TokenId> second) const;
  /// The one token that a template ends (or begins) a single sequence with, if there is one.
  std::optional<TokenId> last_of_single() const;
  std::optional<TokenId> first_of_single() const;
  /// The largest id that stands in it; -1 where none does.
  TokenId largest_id() const;

 private:
  std::vector<Part> single_{{0, {}, 0}}, pair_{{0, {}, 0}, {1, {}, 1}};
};

/// The template that the post-processor of a tokenizer.json describes; one that is not built is refused by
/// its name.
SequenceTemplate make_template(const Json& described);
SequenceTemplate bert_template(TokenId start, TokenId separator);

}  // namespace mindpipe
