#include "tokenize/character_class.h"

#include <fmt/core.h>

#include <array>
#include <optional>
#include <utility>
#include <vector>

namespace mindpipe {

namespace {

constexpr int deepest_class = 16;

constexpr std::array<std::pair<std::string_view, std::string_view>, 12> members_of_names{
    {{"alpha", R"(\p{Alphabetic})"},
     {"alnum", R"(\p{Alphabetic}\p{Nd})"},
     {"ascii", R"(\x00-\x7f)"},
     {"blank", R"(\p{Zs}\t)"},
     {"cntrl", R"(\p{Cc})"},
     {"digit", R"(\p{Nd})"},
     {"lower", R"(\p{Lowercase})"},
     {"punct", R"(\p{P}\p{S})"},
     {"space", R"(\s)"},
     {"upper", R"(\p{Uppercase})"},
     {"word", members_of_words},
     {"xdigit", members_of_hexadecimal}}};

/// Members of one class, written one behind the other, and classes that cannot stand among them.
struct Members {
  std::string written;
  std::vector<std::string> others;
};

/// Every class matches one character, so that the first of several that matches is as good as any.
std::string joined(const Members& members) {
  if (members.others.empty()) return fmt::format("[{}]", members.written);
  std::string all = members.written.empty() ? "" : fmt::format("[{}]", members.written);
  for (const std::string& other : members.others) all += (all.empty() ? "" : "|") + other;
  return fmt::format("(?>{})", all);
}

/// A class in the making.
class ClassReader {
 public:
  ClassReader(PatternReader& reader, bool ignores_case, int depth)
      : reader_(reader), ignores_case_(ignores_case), depth_(depth) {}

  /// Reads up to the closing bracket. Members that may stand among those of the class around go there.
  std::string read(Members* around) {
    reader_.require(depth_ < deepest_class, fmt::format("classes that nest deeper than {}", deepest_class));
    reader_.skip(1);
    const bool is_negated = reader_.peek() == '^';
    if (is_negated) reader_.skip(1);
    for (bool is_first = true; is_first || reader_.peek() != ']'; is_first = false) {
      reader_.require(!reader_.at_end(), "a class without its end");
      take_member();
    }
    reader_.skip(1);
    reader_.require(has_members(), "a class, or a side of &&, without members");
    const bool is_plain = both_.empty() && now_.others.empty();
    reader_.require(is_plain || !ignores_case_, "a class of classes under (?i)");
    if (is_plain && is_negated) return fmt::format("[^{}]", now_.written);
    if (is_plain && around != nullptr) {
      around->written += now_.written;
      return "";
    }
    std::string all = joined(now_);
    for (const std::string& one : both_) all.insert(0, fmt::format("(?={})", one));
    if (is_negated) return fmt::format("(?:(?!{})(?s:.))", all);
    return both_.empty() ? all : fmt::format("(?:{})", all);
  }

 private:
  bool has_members() const { return !now_.written.empty() || !now_.others.empty(); }

  void take_member() {
    if (reader_.rest().starts_with("&&")) {
      reader_.require(has_members(), "a class, or a side of &&, without members");
      both_.push_back(joined(std::exchange(now_, {})));
      reader_.skip(2);
      return;
    }
    if (reader_.peek() == '[') return take_inner();
    if (reader_.peek() != '\\') {
      reader_.require(!reader_.rest().starts_with("--"), "-- within a class");
      return take_range(reader_.take_character());
    }
    if (reader_.peek(1) == 'b') {
      reader_.skip(2);
      return take_range('\b');
    }
    if (const auto code = reader_.take_code()) return take_range(*code);
    take_set();
  }

  /// [:alpha:] and its like, or a class.
  void take_inner() {
    const std::string_view rest = reader_.rest();
    for (const auto& [name, members] : members_of_names)
      for (const bool is_negated : {false, true}) {
        const std::string whole = fmt::format("[:{}{}:]", is_negated ? "^" : "", name);
        if (!rest.starts_with(whole)) continue;
        reader_.require(!ignores_case_, whole + " under (?i)");
        reader_.skip(whole.size());
        if (is_negated) now_.others.push_back(fmt::format("[^{}]", members));
        else now_.written += members;
        return;
      }
    reader_.require(!rest.starts_with("[:"), fmt::format("{}", rest.substr(0, rest.find(":]") + 2)));
    std::string inner = ClassReader(reader_, ignores_case_, depth_ + 1).read(&now_);
    if (!inner.empty()) now_.others.push_back(std::move(inner));
  }

  void take_range(char32_t first) {
    check_case(first);
    now_.written += written_code(first);
    if (reader_.peek() != '-' || reader_.peek(1) == ']' || reader_.rest().starts_with("-&&")) return;
    reader_.skip(1);
    std::optional<char32_t> last;
    if (reader_.peek() == '\\') last = reader_.take_code();
    else if (reader_.peek() != '[') last = reader_.take_character();
    reader_.require(last.has_value(), "a range of characters that ends with a class");
    check_case(*last);
    now_.written += '-' + written_code(*last);
  }
  void check_case(char32_t code) const {
    reader_.require(!ignores_case_ || code < 0x80, "a character beyond ASCII under (?i)");
  }

  void take_set() {
    const char letter = reader_.peek(1);
    const std::string escape{'\\', letter};
    if (letter == 'p' || letter == 'P') {
      now_.written += reader_.take_property(ignores_case_);
      return;
    }
    reader_.require(std::string_view("dDsSwWhH").find(letter) != std::string_view::npos,
                    escape + " within a class");
    reader_.require(!ignores_case_ || std::string_view("dsh").find(letter) != std::string_view::npos,
                    escape + " within a class under (?i)");
    reader_.skip(2);
    if (letter == 'w') now_.written += members_of_words;
    else if (letter == 'h') now_.written += members_of_hexadecimal;
    else if (letter == 'W') now_.others.push_back(fmt::format("[^{}]", members_of_words));
    else if (letter == 'H') now_.others.push_back(fmt::format("[^{}]", members_of_hexadecimal));
    else now_.written += escape;
  }

  PatternReader& reader_;
  bool ignores_case_;
  int depth_;
  Members now_;
  std::vector<std::string> both_;  ///< classes that && wants as well
};

}  // namespace

std::string read_class(PatternReader& reader, bool ignores_case) {
  return ClassReader(reader, ignores_case, 0).read(nullptr);
}

}  // namespace mindpipe
