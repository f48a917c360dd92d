#include "core/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace mindpipe {

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_plain_integer(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return all_digits(text) && (text.size() == 1 || text[0] != '0');
}

int edit_distance(std::string_view from, std::string_view to) {
  std::vector<std::vector<int>> d(from.size() + 1, std::vector<int>(to.size() + 1));
  for (std::size_t i = 0; i <= from.size(); ++i) d[i][0] = static_cast<int>(i);
  for (std::size_t j = 0; j <= to.size(); ++j) d[0][j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= from.size(); ++i)
    for (std::size_t j = 1; j <= to.size(); ++j) {
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (from[i - 1] != to[j - 1])});
      if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[from.size()][to.size()];
}

std::optional<std::string> nearest_spelling(std::string_view word,
                                            const std::vector<std::string>& candidates) {
  if (word.size() > 200) return std::nullopt;
  std::optional<std::string> best;
  int best_distance = std::max(1, static_cast<int>(word.size()) / 3) + 1;
  for (const std::string& candidate : candidates) {
    const int distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const auto near = nearest_spelling(word, candidates);
  return near ? "; did you mean " + *near + "?" : "";
}

std::string human_bytes(double bytes) {
  const char* unit = "bytes";
  for (const char* larger : {"KiB", "MiB", "GiB", "TiB", "PiB"}) {
    if (std::abs(bytes) < 1024) break;
    bytes /= 1024;
    unit = larger;
  }
  return bytes == std::floor(bytes) ? fmt::format("{:.0f} {}", bytes, unit)
                                    : fmt::format("{:.1f} {}", bytes, unit);
}

std::string human_seconds(double seconds) {
  if (!(seconds >= 0) || seconds > 1e12) return "unknown";
  if (seconds < 1e-3) return fmt::format("{:.1f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.1f} ms", seconds * 1e3);
  if (seconds < 10) return fmt::format("{:.2f} s", seconds);
  if (seconds < 60) return fmt::format("{:.1f} s", seconds);
  const std::int64_t whole = std::llround(seconds);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  if (whole < 86400) return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
  return fmt::format("{} d {:02} h", whole / 86400, whole % 86400 / 3600);
}

std::string signed_percent(double share, int digits) {
  const std::string text = fmt::format("{:+.{}f} %", 100 * share, digits);
  return text.find_first_of("123456789") == std::string::npos ? text.substr(1) : text;
}

std::string longer_or_shorter(double share) {
  const std::string text = signed_percent(share);
  if (text == "0.0 %") return "as long";
  return text.substr(1) + (share > 0 ? " longer" : " shorter");
}

namespace {

void skip_spaces(std::string_view& text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
}

/// Takes a plain decimal number off the front of the text.
std::optional<double> take_number(std::string_view& text) {
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  double number = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (end.ec != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end.ptr - text.data()));
  skip_spaces(text);
  return number;
}

struct Scale {
  std::string_view name;
  double factor;
};

/// Takes a unit's name off the front of the text.
template <std::size_t N>
std::optional<double> take_unit(std::string_view& text, const Scale (&scales)[N]) {
  const std::size_t length = std::min(text.find_first_of(" 0123456789"), text.size());
  for (const Scale& scale : scales)
    if (text.substr(0, length) == scale.name) {
      text.remove_prefix(length);
      skip_spaces(text);
      return scale.factor;
    }
  return std::nullopt;
}

}  // namespace

std::optional<std::int64_t> parse_bytes(std::string_view text) {
  static constexpr Scale scales[] = {{"", 1},         {"B", 1},        {"KiB", 0x1p10}, {"MiB", 0x1p20},
                                     {"GiB", 0x1p30}, {"TiB", 0x1p40}, {"kB", 1e3},     {"MB", 1e6},
                                     {"GB", 1e9},     {"TB", 1e12}};
  std::int64_t exact = 0;  // plain digits stay exact beyond 2^53
  const auto end = std::from_chars(text.data(), text.data() + text.size(), exact);
  if (end.ec == std::errc() && end.ptr == text.data() + text.size() && exact >= 0) return exact;
  const auto number = take_number(text);
  if (!number) return std::nullopt;
  const auto factor = take_unit(text, scales);
  if (!factor || !text.empty() || *number * *factor >= 0x1p63) return std::nullopt;
  return static_cast<std::int64_t>(*number * *factor);
}

std::optional<double> parse_seconds(std::string_view text) {
  static constexpr Scale scales[] = {{"s", 1},     {"m", 60},    {"min", 60},  {"h", 3600},
                                     {"d", 86400}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}};
  double sum = 0;
  bool first = true;
  do {
    const auto number = take_number(text);
    if (!number) return std::nullopt;
    if (text.empty())
      return first ? number : std::nullopt;  // a bare number is seconds only when it stands alone
    const auto factor = take_unit(text, scales);
    if (!factor) return std::nullopt;
    sum += *number * *factor;
    first = false;
  } while (!text.empty());
  return sum;
}

std::string shortest(double number) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, number);
  return {digits, end.ptr};
}

bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const int length = lead < 0x80                   ? 1
                       : lead >= 0xC2 && lead < 0xE0 ? 2
                       : lead >= 0xE0 && lead < 0xF0 ? 3
                       : lead >= 0xF0 && lead < 0xF5 ? 4
                                                     : 0;
    if (length == 0 || i + length > text.size()) return false;
    std::uint32_t point = length == 1 ? lead : lead & (0x7F >> length);
    for (int k = 1; k < length; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if ((next & 0xC0) != 0x80) return false;
      point = point << 6 | (next & 0x3F);
    }
    const bool too_long = (length == 3 && point < 0x800) || (length == 4 && point < 0x10000);
    if (too_long || point > 0x10FFFF || (point >= 0xD800 && point < 0xE000)) return false;
    i += static_cast<std::size_t>(length);
  }
  return true;
}

std::string printable(std::string_view text, std::size_t most) {
  std::string_view begin = text.substr(0, most);
  if (begin.size() < text.size())  // not amid a character
    while (!begin.empty() && (static_cast<unsigned char>(text[begin.size()]) & 0xc0) == 0x80)
      begin.remove_suffix(1);
  const bool whole = is_utf8(begin);
  std::string shown;
  for (const char byte : begin) {
    const auto c = static_cast<unsigned char>(byte);
    if (c < 0x20 || c == 0x7f || (c >= 0x80 && !whole)) shown += fmt::format("\\x{:02x}", c);
    else shown += byte;
  }
  return shown + (begin.size() < text.size() ? "..." : "");
}

std::string joined(const std::vector<int>& numbers) {
  std::vector<std::string> words;
  for (int number : numbers) words.push_back(std::to_string(number));
  return join(words, ", ");
}

std::string join(const std::vector<std::string>& words, std::string_view between) {
  std::string text;
  for (const std::string& word : words) {
    if (&word != &words.front()) text += between;
    text += word;
  }
  return text;
}

std::string in_short_lines(std::string_view text, std::size_t most) {
  std::string all;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    const std::string indent(std::min(line.find_first_not_of(' '), line.size()) + 2, ' ');
    for (std::size_t room = most; line.size() > room; room = most - std::min(most, indent.size())) {
      const std::size_t word = line.find_first_not_of(' '), before = line.rfind(' ', room),
                        cut = before != line.npos && before > word ? before : line.find(' ', word);
      if (cut == line.npos) break;
      all.append(line.substr(0, cut)).append("\n").append(indent);
      line.remove_prefix(cut + 1);
    }
    all.append(line);
    if (end < text.size()) all += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return all;
}

}  // namespace mindpipe
