#include "corpus/json_document.h"

#include "core/check.h"

namespace mindpipe {
namespace {

std::string keys_of(const JsonDocument::Json& object) {
  std::string keys;
  for (const auto& [key, value] : object.items()) {
    if (keys.size() > 200) return keys + ", ...";
    if (!keys.empty()) keys += ", ";
    keys += key;
  }
  return keys.empty() ? "none" : keys;
}

}  // namespace

JsonDocument::JsonDocument(const std::string& path, std::int64_t line, const std::string& text)
    : path_(path), line_(line) {
  try {
    object_ = Json::parse(text);
  } catch (const Json::parse_error& error) {
    fail(Exit::bad_data,
         "{}: line {}, byte {}: not valid JSON (expected one object a line, in UTF-8); mend the line or "
         "remove it",
         path, line, error.byte);
  }
  MP_REQUIRE(object_.is_object(), Exit::bad_data,
             "{}: line {}: the line is of type {} (expected one JSON object a line)", path, line,
             object_.type_name());
}

const std::string& JsonDocument::text_at(const Json& within, const std::string& key) const {
  const auto found = within.find(key);
  MP_REQUIRE(found != within.end(), Exit::bad_data,
             "{}: line {}: there is no key '{}' (the keys are: {}); name the one that holds the text", path_,
             line_, key, keys_of(within));
  MP_REQUIRE(found->is_string(), Exit::bad_data, "{}: line {}: '{}' is of type {} (expected string)", path_,
             line_, key, found->type_name());
  return found->get_ref<const std::string&>();
}

std::vector<Message> JsonDocument::messages(const std::string& prompt_key,
                                            const std::string& answer_key) const {
  std::vector<Message> messages;
  const auto found = object_.find("messages");
  MP_REQUIRE(
      found != object_.end() || object_.contains(prompt_key), Exit::bad_data,
      "{}: line {}: there is neither 'messages' nor '{}' (the keys are: {}); name the one that holds the "
      "question",
      path_, line_, prompt_key, keys_of(object_));
  if (found == object_.end())
    return {{"user", text_at(object_, prompt_key)}, {"assistant", text_at(object_, answer_key)}};
  MP_REQUIRE(found->is_array(), Exit::bad_data, "{}: line {}: 'messages' is of type {} (expected array)",
             path_, line_, found->type_name());
  for (const Json& message : *found) {
    MP_REQUIRE(message.is_object(), Exit::bad_data,
               "{}: line {}: a message is of type {} (expected an object with role and content)", path_,
               line_, message.type_name());
    messages.push_back({text_at(message, "role"), text_at(message, "content")});
  }
  return messages;
}

}  // namespace mindpipe
