#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mindpipe {

/// One JSON object on one line, in the order of adding. Numbers are printed so that reading them back gives
/// the same bits; JSON has no infinity and no NaN: they become null.
class JsonLine {
 public:
  JsonLine& add(std::string_view key, std::int64_t value);
  JsonLine& add(std::string_view key, int value) { return add(key, std::int64_t{value}); }
  JsonLine& add(std::string_view key, double value);
  JsonLine& add(std::string_view key, float value);
  JsonLine& add(std::string_view key, bool value);
  JsonLine& add(std::string_view key, std::string_view value);
  JsonLine& add(std::string_view key, const std::vector<int>& numbers);
  JsonLine& add(std::string_view key, const std::vector<double>& numbers);
  JsonLine& add(std::string_view key, const char* value) { return add(key, std::string_view(value)); }

  /// {"step": 1, "loss": 5.5}
  std::string text() const { return "{" + members_ + "}"; }

 private:
  JsonLine& add_raw(std::string_view key, const std::string& value);
  std::string members_;
};

/// Text as a JSON string, in quotes; bytes that are not UTF-8 become '?'.
std::string json_string(std::string_view text);

}  // namespace mindpipe
