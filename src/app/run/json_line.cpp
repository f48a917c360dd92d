#include "app/run/json_line.h"

#include <fmt/core.h>

#include <charconv>
#include <cmath>

#include "core/text.h"

namespace mindpipe {
namespace {

template <class Number>
std::string json_number(Number value) {
  if (!std::isfinite(value)) return "null";
  char digits[64];
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

}  // namespace

std::string json_string(std::string_view text) {
  const bool sound = is_utf8(text);
  std::string out = "\"";
  for (unsigned char c : text) {
    if (c == '"' || c == '\\') (out += '\\') += static_cast<char>(c);
    else if (c < 0x20) out += fmt::format("\\u{:04x}", c);
    else if (c >= 0x80 && !sound) out += '?';
    else out += static_cast<char>(c);
  }
  return out + "\"";
}

JsonLine& JsonLine::add(std::string_view key, std::int64_t value) {
  return add_raw(key, std::to_string(value));
}
JsonLine& JsonLine::add(std::string_view key, double value) { return add_raw(key, json_number(value)); }
JsonLine& JsonLine::add(std::string_view key, float value) { return add_raw(key, json_number(value)); }
JsonLine& JsonLine::add(std::string_view key, bool value) { return add_raw(key, value ? "true" : "false"); }
JsonLine& JsonLine::add(std::string_view key, std::string_view value) {
  return add_raw(key, json_string(value));
}

JsonLine& JsonLine::add(std::string_view key, const std::vector<int>& numbers) {
  return add_raw(key, "[" + joined(numbers) + "]");
}

JsonLine& JsonLine::add(std::string_view key, const std::vector<double>& numbers) {
  std::string all;
  for (const double number : numbers) all += (all.empty() ? "" : ", ") + json_number(number);
  return add_raw(key, "[" + all + "]");
}

JsonLine& JsonLine::add_raw(std::string_view key, const std::string& value) {
  if (!members_.empty()) members_ += ", ";
  members_ += json_string(key);
  members_ += ": ";
  members_ += value;
  return *this;
}

}  // namespace mindpipe
