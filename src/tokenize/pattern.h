#pragma once
#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tokenize/utf8.h"

namespace mindpipe {

/// Where a pattern matches: bytes [begin, end) of the text.
struct Match {
  std::size_t begin = 0, end = 0;
};

/// What one thread needs to look for patterns: room for a match and a stack.
class Matcher {
 public:
  Matcher();
  ~Matcher();
  Matcher(const Matcher&) = delete;
  Matcher& operator=(const Matcher&) = delete;

 private:
  friend class Pattern;
  struct Room;
  std::unique_ptr<Room> room_;
};

/// Whose reading a pattern was written for.
enum class PatternSyntax { pcre2, oniguruma };

/// A regular expression over UTF-8, compiled for the processor; \s, \w and \d mean what Unicode calls white
/// space, word and digit.
class Pattern {
 public:
  explicit Pattern(const std::string& written, PatternSyntax syntax = PatternSyntax::pcre2);
  ~Pattern();
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;

  /// The first match that begins at byte `from` or later. The text has to be UTF-8. A pattern that tries too
  /// many ways is refused.
  std::optional<Match> find(std::string_view text, std::size_t from, Matcher& matcher) const;
  /// All matches from the begin on, of which an empty text has none. None that is empty begins where the
  /// last one ended.
  template <class Take>
  void for_each_match(std::string_view text, Matcher& matcher, Take take) const {
    std::optional<std::size_t> last_end;
    for (std::size_t from = 0; !text.empty() && from <= text.size();) {
      const auto match = find(text, from, matcher);
      if (!match) break;
      if (match->begin == match->end && last_end == match->end) {
        from = match->end + std::max<std::size_t>(first_character(text.substr(match->end)).bytes, 1);
        continue;
      }
      take(*match);
      from = match->end;
      last_end = from;
    }
  }
  const std::string& written() const { return written_; }

 private:
  struct Code;
  std::string written_;
  std::unique_ptr<Code> code_;
};

/// The pattern for PCRE2: \s, \S, \w, \W written out, since PCRE2 takes U+180E for a space and leaves marks
/// out of words.
std::string written_for_pcre2(std::string_view pattern);

}  // namespace mindpipe
