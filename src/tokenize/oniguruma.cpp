#include "tokenize/oniguruma.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "core/check.h"
#include "tokenize/character_class.h"
#include "tokenize/pattern_reader.h"

namespace mindpipe {

namespace {

/// What \w and \b take for a character of a word, which \w between brackets does not take.
constexpr std::string_view more_of_words = R"(\x{b2}\x{b3}\x{b9}\x{bc}-\x{be})";

/// Two letters that are one in another case: (?i) lets them match one letter in Oniguruma alone.
constexpr std::array<std::string_view, 5> letters_of_one{"ss", "ff", "fi", "fl", "st"};

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }
bool is_letter(char letter) { return (letter | 0x20) >= 'a' && (letter | 0x20) <= 'z'; }

/// Writes one pattern for PCRE2, atom by atom.
class Translation {
 public:
  explicit Translation(std::string_view pattern) : reader_(pattern) {}

  std::string run() {
    while (!reader_.at_end()) step();
    return out_ + groups_.front().closing;
  }

 private:
  /// A group that is open, or the whole pattern.
  struct Group {
    bool ignore_case = false;
    std::size_t begin = 0;  ///< in what is written
    std::string closing;
  };
  enum class Repeated { no, by_interval, by_sign };

  void step() {
    switch (reader_.peek()) {
      case '\\':
        return take_escape();
      case '[':
        return take_class();
      case '(':
        return open_group();
      case ')':
        return close_group();
      case '|':
        reader_.skip(1);
        out_ += '|';
        atom_.reset();
        letter_before_ = 0;
        return;
      case '*':
      case '+':
      case '?':
        return take_sign();
      case '{':
        if (!take_interval()) take_character(reader_.take_character());
        return;
      case '^':
      case '$':
        return take_known(1, fmt::format("(?m:{})", reader_.peek()));
      case '.':
        return take_known(1, ".");
      default:
        take_character(reader_.take_character());
    }
  }

  bool ignores_case() const { return groups_.back().ignore_case; }

  void append_atom(std::string_view text) {
    atom_ = out_.size();
    repeated_ = Repeated::no;
    out_ += text;
  }
  /// An atom in place of `bytes` of the pattern, which is no letter.
  void take_known(std::size_t bytes, std::string_view text) {
    reader_.skip(bytes);
    append_atom(text);
    letter_before_ = 0;
  }

  void take_character(char32_t code) {
    char letter = 0;
    if (ignores_case()) {
      reader_.require(code < 0x80, "a character beyond ASCII under (?i)");
      letter = is_letter(static_cast<char>(code)) ? static_cast<char>(code | 0x20) : '\0';
      const std::string both{letter_before_, letter};
      reader_.require(std::find(letters_of_one.begin(), letters_of_one.end(), both) == letters_of_one.end(),
                      "'" + both + "' under (?i)");
    }
    append_atom(written_code(code));
    letter_before_ = letter;
  }

  void take_class() {
    const std::string text = read_class(reader_, ignores_case());
    append_atom(text);
    letter_before_ = 0;
  }

  void take_escape() {
    if (const auto code = reader_.take_code()) return take_character(*code);
    const char letter = reader_.peek(1);
    const std::string words = fmt::format("{}{}", members_of_words, more_of_words);
    switch (letter) {
      case 'd':
      case 'D':
      case 's':
      case 'S':
      case 'A':
      case 'Z':
      case 'z':
      case 'G':
      case 'R':
      case 'X':
      case 'K':
        return take_known(2, std::string{'\\', letter});
      case 'w':
        return take_known(2, fmt::format("[{}]", words));
      case 'W':
        return take_known(2, fmt::format("[^{}]", words));
      case 'h':
        return take_known(2, fmt::format("[{}]", members_of_hexadecimal));
      case 'H':
        return take_known(2, fmt::format("[^{}]", members_of_hexadecimal));
      case 'b':
        return take_known(2, fmt::format("(?:(?<=[{0}])(?![{0}])|(?<![{0}])(?=[{0}]))", words));
      case 'B':
        return take_known(2, fmt::format("(?:(?<=[{0}])(?=[{0}])|(?<![{0}])(?![{0}]))", words));
      case 'N':
        return take_known(2, R"([^\n])");
      case 'O':
        return take_known(2, "(?s:.)");
      case 'p':
      case 'P':
        return take_known(0, reader_.take_property(ignores_case()));
      default:
        take_back_reference();
    }
  }

  void take_back_reference() {
    const char letter = reader_.peek(1);
    if (letter >= '1' && letter <= '9' && !is_digit(reader_.peek(2)) && !ignores_case())
      return take_known(2, fmt::format("\\g{{{}}}", letter));
    reader_.refuse(fmt::format("\\{}", letter));
  }

  void open_group() {
    const char second = reader_.peek(1), third = reader_.peek(2), fourth = reader_.peek(3);
    reader_.require(second != '*', "(*");
    if (second != '?') return push_group(1, "(", ignores_case());
    if (third == '#') return skip_comment();
    if (third == ':' || third == '=' || third == '!' || third == '>')
      return push_group(3, fmt::format("(?{}", third), ignores_case());
    if (third == '<' && (fourth == '=' || fourth == '!'))
      return push_group(4, fmt::format("(?<{}", fourth), ignores_case());
    if (third == '<' && is_letter(fourth)) {
      // Groups have no numbers where some have names, and nothing is built that asks for a name.
      const std::size_t bytes = reader_.rest().find('>');
      reader_.require(bytes != std::string_view::npos, "a group's name without an end");
      return push_group(bytes + 1, "(?:", ignores_case());
    }
    take_options();
  }

  void push_group(std::size_t bytes, std::string_view opening, bool ignore_case) {
    reader_.skip(bytes);
    groups_.push_back({ignore_case, out_.size(), ")"});
    out_ += opening;
    atom_.reset();
  }

  void skip_comment() {
    const std::size_t bytes = reader_.rest().find(')');
    reader_.require(bytes != std::string_view::npos &&
                        reader_.rest().substr(0, bytes).find('\\') == std::string_view::npos,
                    "a comment with a backslash, or without an end");
    reader_.skip(bytes + 1);
  }

  /// (?i) and (?m), which hold up to the end of their group, or (?i:...). Oniguruma's m is PCRE2's s.
  void take_options() {
    std::string written = "(?";
    bool on = true, ignore_case = ignores_case();
    std::size_t bytes = 2;
    for (;; ++bytes) {
      const char letter = reader_.peek(bytes);
      if (letter == ')' || letter == ':') break;
      reader_.require(letter == 'i' || letter == 'm' || letter == '-',
                      fmt::format("(?{}", reader_.rest().substr(2, bytes - 1)));
      if (letter == 'i') ignore_case = on;
      if (letter == '-') on = false;
      written += letter == 'm' ? 's' : letter;
    }
    written += ':';
    if (reader_.peek(bytes) == ':') return push_group(bytes + 1, written, ignore_case);
    reader_.skip(bytes + 1);
    out_ += written;
    groups_.back().closing += ')';
    groups_.back().ignore_case = ignore_case;
    atom_.reset();
  }

  void close_group() {
    reader_.require(groups_.size() > 1, "a ) without its (");
    reader_.skip(1);
    out_ += groups_.back().closing;
    atom_ = groups_.back().begin;
    repeated_ = Repeated::no;
    groups_.pop_back();
  }

  /// What is repeated already becomes an atom, for one more quantifier.
  void make_repeatable() {
    reader_.require(atom_.has_value(), "a quantifier of nothing");
    reader_.require(repeated_ != Repeated::by_sign, "two quantifiers in a row");
    if (repeated_ == Repeated::by_interval) enclose();
  }
  void enclose() {
    out_.insert(*atom_, "(?:");
    out_ += ')';
  }

  void take_sign() {
    make_repeatable();
    out_ += reader_.peek();
    reader_.skip(1);
    if (reader_.peek() == '?' || reader_.peek() == '+') {
      out_ += reader_.peek();
      reader_.skip(1);
    }
    repeated_ = Repeated::by_sign;
  }

  /// An interval, unless the bracket stands for itself. A + behind it repeats the whole, a ? makes it lazy,
  /// but behind a single number says that there may be none.
  bool take_interval() {
    const std::string_view rest = reader_.rest();
    const std::string_view inner = rest.substr(1, std::min(rest.size(), rest.find('}')) - 1);
    const std::size_t comma = inner.find(',');
    const auto is_part = [](char letter) { return letter == ',' || is_digit(letter); };
    const bool is_number = inner.size() + 1 < rest.size() &&
                           std::any_of(inner.begin(), inner.end(), is_digit) &&
                           std::all_of(inner.begin(), inner.end(), is_part) && comma == inner.rfind(',');
    if (!is_number) return false;
    make_repeatable();
    out_ += fmt::format("{{{}{}}}", comma == 0 ? "0" : "", inner);
    reader_.skip(inner.size() + 2);
    repeated_ = Repeated::by_interval;
    if (reader_.peek() != '?') return true;
    if (comma == std::string_view::npos) enclose();
    out_ += '?';
    reader_.skip(1);
    repeated_ = Repeated::by_sign;
    return true;
  }

  PatternReader reader_;
  std::string out_;
  std::vector<Group> groups_{1};
  std::optional<std::size_t> atom_;  ///< begin of what a quantifier would repeat
  Repeated repeated_ = Repeated::no;
  char letter_before_ = 0;  ///< a small letter that stands before under (?i)
};

}  // namespace

std::string oniguruma_for_pcre2(std::string_view pattern) { return Translation(pattern).run(); }

}  // namespace mindpipe
