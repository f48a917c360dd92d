#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tokenize/json_fields.h"
#include "tokenize/pattern.h"

namespace mindpipe {

/// Undoes what pre-tokenizer and normalizer did, token by token; the texts are joined afterwards.
class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual void undo(std::vector<std::string>& tokens, Matcher& matcher) const = 0;
};

/// The decoder that a tokenizer.json describes; one that is not built is refused by its name.
std::unique_ptr<Decoder> make_decoder(const Json& described);

}  // namespace mindpipe
