#include "app/run/injection.h"

#include <charconv>
#include <cmath>
#include <optional>

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

/// A number that stands alone; nothing when it is none, or not finite.
std::optional<double> plain_number(const std::string& text) {
  double number = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end.ec != std::errc{} || end.ptr != text.data() + text.size() || !std::isfinite(number))
    return std::nullopt;
  return number;
}

/// A time; only a clock can be so much behind.
double seconds_in(const Injection& injection, const std::string& time, const char* or_else = "") {
  const bool back = injection.kind == FaultKind::skew && time.starts_with('-');
  const auto seconds = parse_seconds(std::string_view(time).substr(back ? 1 : 0));
  if (!seconds || *seconds < 0)
    refuse(injection.text, fmt::format("{} is no time (2s, 500ms){}", time, or_else));
  return back ? -*seconds : *seconds;
}

/// "2s" sleeps once, "2s/1" in each step from there on; "1.5" is a factor in each, "1.5/7" in every seventh.
void understand_slow(Injection& injection) {
  const std::size_t slash = injection.argument.find('/');
  const std::string amount = injection.argument.substr(0, slash);
  if (slash != std::string::npos) {
    injection.every = number_in(injection.text, injection.argument.substr(slash + 1), "number of steps");
    if (injection.every == 0) refuse(injection.text, "0 is no number of steps (1.5/7: every seventh)");
  }
  constexpr double most = 1000;
  const std::optional<double> factor = plain_number(amount);
  if (!factor) injection.seconds = seconds_in(injection, amount, ", nor a factor (1.5)");
  else if (*factor > 0 && *factor <= most) injection.factor = *factor;
  else refuse(injection.text, fmt::format("{} is no factor (1.5)", amount));
}

/// "7ms+20ppm": how far a clock is ahead at the first step, and how fast it is.
void understand_skew(Injection& injection) {
  const std::string& argument = injection.argument;
  const std::size_t sign = argument.find_first_of("+-", 1);
  injection.seconds = seconds_in(injection, argument.substr(0, sign));
  if (sign == std::string::npos) return;
  const std::string rate = argument.substr(argument[sign] == '+' ? sign + 1 : sign);
  const std::size_t unit = rate.size() < 4 ? 0 : rate.size() - 3;
  const std::optional<double> ppm = plain_number(rate.substr(0, unit));
  constexpr double most = 1e6;
  if (!ppm || std::abs(*ppm) > most || rate.substr(unit) != "ppm")
    refuse(injection.text, rate + " is no rate of a clock (20ppm)");
  injection.ppm = *ppm;
}

void understand_argument(Injection& injection) {
  const std::string& argument = injection.argument;
  const FaultRow& row = row_of(injection.kind);
  if (argument.empty() && row.needs_argument)
    refuse(injection.text, fmt::format("{} takes {} behind the step", injection.kind, row.argument));
  if (argument.empty()) return;
  if (row.argument.empty()) refuse(injection.text, fmt::format("{} takes no argument", injection.kind));
  if (injection.kind == FaultKind::exit && number_in(injection.text, argument, "exit code") > 255)
    refuse(injection.text, "an exit code is at most 255");
  if (injection.kind == FaultKind::slow) understand_slow(injection);
  if (injection.kind == FaultKind::slow_link) injection.seconds = seconds_in(injection, argument);
  if (injection.kind == FaultKind::skew) understand_skew(injection);
  if (injection.kind != FaultKind::jitter && injection.kind != FaultKind::uneven) return;
  const std::optional<double> share = plain_number(argument);
  if (!share || *share <= 0 || *share > 1)
    refuse(injection.text, argument + " is no share of the time (0.2)");
  injection.factor = *share;
}

/// Understands whom it befalls: "3", or of a link "1-2".
void understand_place(Injection& injection, const std::string& place) {
  const std::size_t dash = row_of(injection.kind).names_link ? place.find('-') : std::string::npos;
  injection.rank = static_cast<int>(number_in(injection.text, place.substr(0, dash), "rank"));
  if (!row_of(injection.kind).names_link) return;
  if (dash == std::string::npos) refuse(injection.text, "a link is two ranks (slow-link@1-2:10:2ms)");
  injection.peer = static_cast<int>(number_in(injection.text, place.substr(dash + 1), "rank"));
}

/// Understands when it befalls: "30", or of what lasts also "30-60".
void understand_steps(Injection& injection, const std::string& steps) {
  const std::size_t dash = row_of(injection.kind).may_end ? steps.find('-') : std::string::npos;
  injection.step = number_in(injection.text, steps.substr(0, dash), "step");
  if (injection.step == 0 && injection.kind != FaultKind::skew) refuse(injection.text, "steps count from 1");
  if (dash == std::string::npos) return;
  injection.last = number_in(injection.text, steps.substr(dash + 1), "step");
  if (injection.last < injection.step) refuse(injection.text, "it ends before it begins");
  if (injection.kind == FaultKind::slow && injection.factor == 0 && injection.every == 0)
    refuse(injection.text, "it sleeps once, and has no end (2s/1: in every step)");
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
  understand_place(injection, text.substr(at + 1, colon - at - 1));
  const std::size_t end = text.find(':', colon + 1);
  if (end != std::string::npos) injection.argument = text.substr(end + 1);
  understand_argument(injection);
  understand_steps(injection, text.substr(colon + 1, end == std::string::npos ? end : end - colon - 1));
  return injection;
}

}  // namespace mindpipe
