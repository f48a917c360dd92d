#include "core/strict_json.h"

#include <nlohmann/json.hpp>
#include <unordered_set>
#include <vector>

#include "core/mapped_file.h"
#include "core/text.h"

namespace mindpipe {

using Json = nlohmann::json;

Json parse_json(std::string_view json, const JsonText& text) {
  std::vector<std::unordered_set<std::string>> seen;
  std::int64_t values = 0;
  const auto refuse = [&](int depth, Json::parse_event_t event, Json& value) {
    MP_REQUIRE(depth <= text.deepest, text.code, "{}: {} is nested deeper than {}", text.path, text.part,
               text.expected);
    MP_REQUIRE(++values <= text.most_values, text.code, "{}: {} has more than {} values (expected {})",
               text.path, text.part, text.most_values, text.expected);
    if (event == Json::parse_event_t::object_start) seen.emplace_back();
    if (event == Json::parse_event_t::object_end) seen.pop_back();
    if (event == Json::parse_event_t::key)
      MP_REQUIRE(seen.back().insert(value.get_ref<const std::string&>()).second, text.code,
                 "{}: {} has the key '{}' twice", text.path, text.part, value.get_ref<const std::string&>());
    return true;
  };
  try {
    return Json::parse(json.begin(), json.end(), refuse);
  } catch (const Json::parse_error& error) {
    fail(text.code, "{}: {} is not JSON at byte {} of the file (expected {})", text.path, text.part,
         text.begins + error.byte, text.expected);
  } catch (const Json::exception&) {
    fail(text.code, "{}: {} has a number that no type holds (expected {})", text.path, text.part,
         text.expected);
  }
}

Json read_json_file(const JsonText& text) {
  const MappedFile file(text.path);
  MP_REQUIRE(file.size() <= text.largest, text.code, "{}: is {} long (expected {}, of {} at most)", text.path,
             human_bytes(static_cast<double>(file.size())), text.expected,
             human_bytes(static_cast<double>(text.largest)));
  return parse_json({reinterpret_cast<const char*>(file.data()), static_cast<std::size_t>(file.size())},
                    text);
}

}  // namespace mindpipe
