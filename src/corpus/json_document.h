#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "corpus/chat_template.h"

namespace mindpipe {

/// A line of JSON: one object. Each refusal says in which file and line.
class JsonDocument {
 public:
  using Json = nlohmann::json;

  JsonDocument(const std::string& path, std::int64_t line, const std::string& text);
  const std::string& path() const { return path_; }
  std::int64_t line() const { return line_; }
  const Json& object() const { return object_; }

  const std::string& text_at(const std::string& key) const { return text_at(object_, key); }
  /// The conversation under `messages`, or else a prompt and an answer under their keys.
  std::vector<Message> messages(const std::string& prompt_key, const std::string& answer_key) const;

 private:
  const std::string& text_at(const Json& within, const std::string& key) const;

  const std::string& path_;
  std::int64_t line_;
  Json object_;
};

}  // namespace mindpipe
