#include "app/run/json_read.h"

#include <limits>
#include <nlohmann/json.hpp>

namespace mindpipe {

std::optional<JsonMembers> read_json(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  JsonMembers members;
  for (const auto& [key, value] : json.items()) {
    if (value.is_string()) members.texts[key] = value.get<std::string>();
    if (value.is_number_integer()) members.integers[key] = value.get<std::int64_t>();
    if (value.is_boolean()) members.integers[key] = value.get<bool>() ? 1 : 0;
    if (value.is_number()) members.numbers[key] = value.get<double>();
    if (value.is_array())
      for (const auto& one : value)
        members.lists[key].push_back(one.is_number() ? one.get<double>()
                                                     : std::numeric_limits<double>::quiet_NaN());
  }
  return members;
}

}  // namespace mindpipe
