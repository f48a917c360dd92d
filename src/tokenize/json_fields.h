#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace mindpipe {

using Json = nlohmann::json;

/// The JSON of a tokenizer's file, read strictly: of a key that stands twice in a vocabulary one token would
/// be lost.
Json read_tokens_json(const std::string& path);
/// The value of a key; nothing where it is missing or null.
const Json* value_of(const Json& object, const char* key);
bool bool_of(const Json& object, const char* key, bool otherwise);
std::string text_of(const Json& object, const char* key);
std::string text_of(const Json& object, const char* key, const std::string& otherwise);
/// A list that is there; "pretokenizers" of a sequence.
const Json& list_of(const Json& object, const char* key);
std::int64_t number_of(const Json& object, const char* key, std::int64_t otherwise);
/// The only character of a text; refused when there are none or several.
std::string character_of(const Json& object, const char* key, const std::string& otherwise);

}  // namespace mindpipe
