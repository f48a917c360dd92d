#include "app/run/injection.h"

#include <charconv>

#include "core/check.h"
#include "core/text.h"

namespace mindpipe {
namespace {

[[noreturn]] void refuse(const std::string& text, const std::string& why) {
  std::string kinds;
  for (const FaultRow& row : rows_of(FaultKind{}))
    kinds += fmt::format("{}{}", kinds.empty() ? "" : ", ", row.name);
  fail(Exit::usage, "command line: --inject {}: {} (kind@rank:step, as nan@0:7; kinds: {})", text, why,
       kinds);
}

std::int64_t number_in(const std::string& text, const std::string& digits, const char* what) {
  std::int64_t number = 0;
  const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (!is_plain_integer(digits) || end.ec != std::errc{} || number < 0 || number > (1 << 30))
    refuse(text, fmt::format("{} is no {}", digits.empty() ? "nothing" : digits, what));
  return number;
}

void check_argument(const Injection& injection) {
  const std::string& argument = injection.argument;
  if (argument.empty()) return;
  if (row_of(injection.kind).argument.empty())
    refuse(injection.text, fmt::format("{} takes no argument", injection.kind));
  if (injection.kind == FaultKind::exit && number_in(injection.text, argument, "exit code") > 255)
    refuse(injection.text, "an exit code is at most 255");
  if (injection.kind == FaultKind::slow && !parse_seconds(argument))
    refuse(injection.text, argument + " is no time (2s, 500ms)");
}

}  // namespace

std::string text_of(const std::vector<Injection>& injections) {
  std::string text;
  for (const Injection& injection : injections) text += (text.empty() ? "" : ",") + injection.text;
  return text;
}

Injection parse_injection(const std::string& text) {
  Injection injection;
  injection.text = text;
  const std::size_t at = text.find('@'), colon = text.find(':', at);
  if (at == std::string::npos || colon == std::string::npos) refuse(text, "it names no rank and step");
  const auto kind = kind_named<FaultKind>(text.substr(0, at));
  if (!kind) refuse(text, text.substr(0, at) + " is no kind of fault");
  injection.kind = *kind;
  injection.rank = static_cast<int>(number_in(text, text.substr(at + 1, colon - at - 1), "rank"));
  const std::size_t end = text.find(':', colon + 1);
  injection.step =
      number_in(text, text.substr(colon + 1, end == std::string::npos ? end : end - colon - 1), "step");
  if (end != std::string::npos) injection.argument = text.substr(end + 1);
  check_argument(injection);
  return injection;
}

}  // namespace mindpipe
