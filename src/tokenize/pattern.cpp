#define PCRE2_CODE_UNIT_WIDTH 8
#include "tokenize/pattern.h"

#include <pcre2.h>

#include <algorithm>
#include <array>
#include <limits>

#include "core/check.h"
#include "core/handle.h"
#include "tokenize/oniguruma.h"

namespace mindpipe {

/// Frees what PCRE2 made.
template <class Type, void (*free_it)(Type*)>
struct Pcre2Traits {
  using Raw = Type*;
  static Raw none() { return nullptr; }
  static void release(Raw raw) noexcept { free_it(raw); }
};

namespace {

constexpr std::string_view white_space =
    R"(\x09-\x0d\x20\x85\xa0\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr std::string_view no_white_space =
    R"(\x00-\x08\x0e-\x1f\x21-\x84\x86-\x9f\xa1-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e})"
    R"(\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{10ffff})";
constexpr std::string_view word = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200c}\x{200d})";

/// Tries of one match on a short text, and for each byte of a text, and KiB of its memory, before a pattern
/// is refused: half a second of tries that cost most.
constexpr std::size_t least_tries = 5'000'000, tries_a_byte = 8;
constexpr std::uint32_t most_kibibytes = 1 << 20;
constexpr std::size_t first_stack = 32 << 10, largest_stack = 16 << 20;

std::uint32_t most_tries(std::size_t bytes) {
  constexpr std::size_t most = std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(std::min(most, least_tries + tries_a_byte * std::min(bytes, most)));
}

std::string sentence_of(int error) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

/// What an escaped letter is written out as; empty for a letter that stays as it is.
std::string written_out(char letter, bool in_class) {
  switch (letter) {
    case 's':
      return in_class ? std::string(white_space) : fmt::format("[{}]", white_space);
    case 'S':
      return in_class ? std::string(no_white_space) : fmt::format("[^{}]", white_space);
    case 'w':
      return in_class ? std::string(word) : fmt::format("[{}]", word);
    case 'W':
      MP_REQUIRE(!in_class, Exit::bad_data,
                 "a pattern has \\W between brackets, which is not built; write what it "
                 "stands for");
      return fmt::format("[^{}]", word);
    default:
      return "";
  }
}

}  // namespace

struct Matcher::Room {
  Handle<Pcre2Traits<pcre2_match_data, pcre2_match_data_free>> match{pcre2_match_data_create(1, nullptr)};
  Handle<Pcre2Traits<pcre2_match_context, pcre2_match_context_free>> context{
      pcre2_match_context_create(nullptr)};
  Handle<Pcre2Traits<pcre2_jit_stack, pcre2_jit_stack_free>> stack{
      pcre2_jit_stack_create(first_stack, largest_stack, nullptr)};
};

struct Pattern::Code {
  Handle<Pcre2Traits<pcre2_code, pcre2_code_free>> code;
  bool is_compiled = false;  ///< for the processor, by the JIT
};

Matcher::Matcher() : room_(std::make_unique<Room>()) {
  MP_REQUIRE(room_->match && room_->context && room_->stack, Exit::out_of_memory,
             "no memory for the matches of a pattern");
  pcre2_set_heap_limit(room_->context.get(), most_kibibytes);
  pcre2_jit_stack_assign(room_->context.get(), nullptr, room_->stack.get());
}
Matcher::~Matcher() = default;

Pattern::Pattern(const std::string& written, PatternSyntax syntax)
    : written_(written), code_(std::make_unique<Code>()) {
  const std::string ours =
      written_for_pcre2(syntax == PatternSyntax::oniguruma ? oniguruma_for_pcre2(written) : written);
  int error = 0;
  PCRE2_SIZE place = 0;
  *code_->code.receive() =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(ours.data()), ours.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &place, nullptr);
  MP_REQUIRE(code_->code, Exit::bad_data, "the pattern {} cannot be compiled ({}); mend it", written,
             sentence_of(error));
  code_->is_compiled = pcre2_jit_compile(code_->code.get(), PCRE2_JIT_COMPLETE) == 0;
}
Pattern::~Pattern() = default;

std::optional<Match> Pattern::find(std::string_view text, std::size_t from, Matcher& matcher) const {
  const Matcher::Room& room = *matcher.room_;
  pcre2_set_match_limit(room.context.get(), most_tries(text.size()));
  const auto* bytes = reinterpret_cast<PCRE2_SPTR>(text.data() != nullptr ? text.data() : "");
  int found = code_->is_compiled ? pcre2_jit_match(code_->code.get(), bytes, text.size(), from,
                                                   PCRE2_NO_UTF_CHECK, room.match.get(), room.context.get())
                                 : PCRE2_ERROR_JIT_STACKLIMIT;
  if (found == PCRE2_ERROR_JIT_STACKLIMIT)
    found = pcre2_match(code_->code.get(), bytes, text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                        room.match.get(), room.context.get());
  if (found == PCRE2_ERROR_NOMATCH) return std::nullopt;
  MP_REQUIRE(found >= 0, Exit::bad_data,
             "the pattern {} cannot be followed through byte {} of a text ({}); simplify it, so that it does "
             "not try "
             "one place in many ways",
             written_, from, sentence_of(found));
  const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(room.match.get());
  return Match{ends[0], ends[1]};
}

std::string written_for_pcre2(std::string_view pattern) {
  std::string ours;
  bool in_class = false;
  std::size_t first = 0;  // place in the class where a bracket stands for itself
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char letter = pattern[i];
    if (letter == '\\' && i + 1 < pattern.size()) {
      const std::string out = written_out(pattern[i + 1], in_class);
      ours += out.empty() ? std::string(pattern.substr(i, 2)) : out;
      ++i;
      continue;
    }
    if (letter == '[' && !in_class) {
      in_class = true;
      first = i + 1 + (i + 1 < pattern.size() && pattern[i + 1] == '^' ? 1 : 0);
    } else if (letter == ']' && i != first) {
      in_class = false;
    }
    ours += letter;
  }
  return ours;
}

}  // namespace mindpipe
