#pragma once
#include <cstddef>
#include <memory>
#include <string>

#include "tokenize/json_fields.h"
#include "tokenize/pattern.h"

namespace mindpipe {

/// A text on its way through normalizers, and how many characters at its begin come of its first character
/// before all of them: none where that was taken out.
struct FormedText {
  std::string text;
  std::size_t of_first = 1;
};

/// Changes a text before it is split: its normal form, its case, its accents.
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  /// Gives a text its new form; it has to be UTF-8, and is UTF-8 afterwards.
  virtual void change(FormedText& formed, Matcher& matcher) const = 0;
};

/// The normalizer that a tokenizer.json describes; one that is not built is refused by its name.
std::unique_ptr<Normalizer> make_normalizer(const Json& described);

/// A pattern as tokenizer.json has it: {"String": ...} is escaped, {"Regex": ...} read as Oniguruma reads it.
std::unique_ptr<Pattern> make_pattern(const Json& described);
/// Replaces every match of a pattern.
void replace(FormedText& formed, const Pattern& pattern, const std::string& content, Matcher& matcher);

}  // namespace mindpipe
