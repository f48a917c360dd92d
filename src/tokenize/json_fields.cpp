#include "tokenize/json_fields.h"

#include "core/check.h"
#include "core/strict_json.h"
#include "tokenize/tokenizer.h"
#include "tokenize/utf8.h"

namespace mindpipe {

namespace {

constexpr int deepest = 64;  // no tokenizer nests more
constexpr std::int64_t most_memory = std::int64_t{192}
                                     << 20;  // 600,000 merges and 260,000 tokens take 170 MB

}  // namespace

Json read_tokens_json(const std::string& path) {
  return read_json_file({.path = path,
                         .expected = "the JSON of a tokenizer",
                         .deepest = deepest,
                         .largest = largest_tokenizer,
                         .most_memory = most_memory});
}

const Json* value_of(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

bool bool_of(const Json& object, const char* key, bool otherwise) {
  const Json* value = value_of(object, key);
  if (value == nullptr) return otherwise;
  MP_REQUIRE(value->is_boolean(), Exit::bad_data, "'{}' is {} (expected true or false)", key,
             value->dump().substr(0, 80));
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
