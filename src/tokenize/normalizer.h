#pragma once
#include <memory>
#include <string>

#include "tokenize/json_fields.h"
#include "tokenize/pattern.h"

namespace mindpipe {

/// Changes a text before it is split: its normal form, its case, its accents.
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  /// The text in its new form; it has to be UTF-8, and is UTF-8 afterwards.
  virtual std::string changed(std::string text, Matcher& matcher) const = 0;
};

/// The normalizer that a tokenizer.json describes; one that is not built is refused by its name.
std::unique_ptr<Normalizer> make_normalizer(const Json& described);

/// A pattern as tokenizer.json has it: {"String": ...} is escaped, {"Regex": ...} read as Oniguruma reads it.
std::unique_ptr<Pattern> make_pattern(const Json& described);
/// The text with every match of a pattern replaced.
std::string replaced(const std::string& text, const Pattern& pattern, const std::string& content,
                     Matcher& matcher);

}  // namespace mindpipe
