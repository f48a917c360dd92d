#include "tokenize/json_fields.h"

#include <unordered_set>
#include <vector>

#include "core/check.h"
#include "core/mapped_file.h"
#include "tokenize/utf8.h"

namespace mindpipe {

namespace {

constexpr int deepest = 64;  ///< no tokenizer nests more, and each level takes some of the stack

/// Refuses keys that stand twice in an object, and objects within objects without end.
class KeyCheck {
 public:
  explicit KeyCheck(const std::string& path) : path_(path) {}
  bool operator()(int depth, Json::parse_event_t event, Json& value) {
    MP_REQUIRE(depth < deepest, Exit::bad_data, "{}: its objects and lists nest {} deep (at most {})", path_,
               depth, deepest);
    if (event == Json::parse_event_t::object_start) keys_.emplace_back();
    if (event == Json::parse_event_t::object_end) keys_.pop_back();
    if (event == Json::parse_event_t::key) {
      const auto& key = value.get_ref<const std::string&>();
      MP_REQUIRE(keys_.back().insert(key).second, Exit::bad_data,
                 "{}: '{}' stands twice in an object; of two tokens of one text only one can be read, so "
                 "name each once",
                 path_, key);
    }
    return true;
  }

 private:
  const std::string& path_;
  std::vector<std::unordered_set<std::string>> keys_;
};

}  // namespace

Json read_tokens_json(const std::string& path) {
  const MappedFile file(path);
  const auto* first = reinterpret_cast<const char*>(file.data());
  KeyCheck check(path);
  try {
    return Json::parse(first, first + file.size(), std::ref(check));
  } catch (const Json::exception& error) {
    fail(Exit::bad_data, "{}: no JSON ({}); name another file, or fetch it again", path, error.what());
  }
}

const Json* value_of(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

bool bool_of(const Json& object, const char* key, bool otherwise) {
  const Json* value = value_of(object, key);
  if (value == nullptr) return otherwise;
  MP_REQUIRE(value->is_boolean(), Exit::bad_data, "'{}' is {} (expected true or false)", key, value->dump());
  return value->get<bool>();
}

std::string text_of(const Json& object, const char* key) {
  const Json* value = value_of(object, key);
  MP_REQUIRE(value != nullptr, Exit::bad_data, "'{}' is missing", key);
  MP_REQUIRE(value->is_string(), Exit::bad_data, "'{}' is {} (expected a text)", key,
             value->dump().substr(0, 80));
  return value->get<std::string>();
}

std::string text_of(const Json& object, const char* key, const std::string& otherwise) {
  return value_of(object, key) == nullptr ? otherwise : text_of(object, key);
}

const Json& list_of(const Json& object, const char* key) {
  const Json* value = value_of(object, key);
  MP_REQUIRE(value != nullptr && value->is_array(), Exit::bad_data, "'{}' is missing, or no list", key);
  return *value;
}

std::int64_t number_of(const Json& object, const char* key, std::int64_t otherwise) {
  const Json* value = value_of(object, key);
  if (value == nullptr) return otherwise;
  MP_REQUIRE(value->is_number_integer(), Exit::bad_data, "'{}' is {} (expected an integer)", key,
             value->dump().substr(0, 80));
  return value->get<std::int64_t>();
}

std::string character_of(const Json& object, const char* key, const std::string& otherwise) {
  std::string text = text_of(object, key, otherwise);
  MP_REQUIRE(!text.empty() && first_character(text).bytes == text.size(), Exit::bad_data,
             "'{}' is '{}' (expected one character)", key, text);
  return text;
}

}  // namespace mindpipe
