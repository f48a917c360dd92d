#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace mindpipe {

/// The texts, numbers, truths and lists among the members of a JSON object.
struct JsonMembers {
  std::map<std::string, std::string> texts;
  std::map<std::string, std::int64_t> integers;      ///< whole numbers; true is 1
  std::map<std::string, double> numbers;             ///< whole ones, too
  std::map<std::string, std::vector<double>> lists;  ///< lists; NaN for what is no number
};
/// The members of an object; none where the text is no whole one: a line that a crash cut short.
std::optional<JsonMembers> read_json(const std::string& text);

}  // namespace mindpipe
