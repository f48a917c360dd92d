#pragma once
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

namespace mindpipe {

/// Reads a pattern of Oniguruma from its begin to its end.
class PatternReader {
 public:
  explicit PatternReader(std::string_view pattern) : pattern_(pattern), rest_(pattern) {}

  bool at_end() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }
  char peek(std::size_t bytes = 0) const { return bytes < rest_.size() ? rest_[bytes] : '\0'; }
  void skip(std::size_t bytes) { rest_.remove_prefix(std::min(bytes, rest_.size())); }

  /// Refuses the pattern for a construct that it has.
  [[noreturn]] void refuse(const std::string& construct) const;
  void require(bool is_built, const std::string& construct) const {
    if (!is_built) refuse(construct);
  }

  char32_t take_character();
  /// The character that an escape stands for: \n, \x41, \u4e00, \.; nothing, and nothing taken, for \d, \p
  /// and all others.
  std::optional<char32_t> take_code();
  /// A property, \p{...}, written for PCRE2.
  std::string take_property(bool ignores_case);

 private:
  std::optional<char32_t> take_hexadecimal(std::size_t begin, std::size_t least, std::size_t most);

  std::string_view pattern_, rest_;
};

/// A character as a pattern of PCRE2 writes it, within a class and without.
std::string written_code(char32_t code);

}  // namespace mindpipe
