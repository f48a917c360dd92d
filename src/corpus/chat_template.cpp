#include "corpus/chat_template.h"

#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/input_file.h"
#include "core/log.h"
#include "core/mapped_file.h"
#include "core/text.h"

namespace mindpipe {
namespace {

constexpr std::string_view place = "{content}", spaces = " \t\r\n";

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(spaces);
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(spaces) + 1 - begin);
}

/// A template that needs no file: what stands before and behind a message of one of its roles.
struct NamedTemplate {
  std::string_view name, begin, before, between, behind;
  bool trims;
  std::array<std::string_view, 4> roles;
};
constexpr NamedTemplate named_templates[] = {
    {"chatml", "", "<|im_start|>", "\n", "<|im_end|>\n", false, {"system", "user", "assistant", "tool"}},
    {"llama3",
     "<|begin_of_text|>",
     "<|start_header_id|>",
     "<|end_header_id|>\n\n",
     "<|eot_id|>",
     true,
     {"system", "user", "assistant", "ipython"}},
};

}  // namespace

ChatTemplate::ChatTemplate(const std::string& name) : name_(name) {
  for (const NamedTemplate& known : named_templates) {
    if (known.name != name) continue;
    begin_ = known.begin;
    trims_ = known.trims;
    for (const std::string_view role : known.roles)
      add_role(std::string(role),
               fmt::format("{}{}{}{}{}", known.before, role, known.between, place, known.behind));
    return;
  }
  constexpr std::int64_t most = std::int64_t{1} << 20;
  const auto patterns = nlohmann::json::parse(read_text(name, most), nullptr, false);
  MP_REQUIRE(patterns.is_object(), Exit::bad_data,
             "{}: not a JSON object (a template is chatml, llama3, or a file with a pattern for each role: "
             "{{\"user\": \"<u>{{content}}</u>\", ...}})",
             name);
  for (const auto& [role, pattern] : patterns.items()) {
    if (role == "trim" && pattern.is_boolean()) {
      trims_ = pattern.get<bool>();
      continue;
    }
    MP_REQUIRE(pattern.is_string(), Exit::bad_data, "{}: '{}' is of type {} (expected string)", name, role,
               pattern.type_name());
    if (role == "begin") begin_ = pattern.get<std::string>();
    else add_role(role, pattern.get<std::string>());
  }
  MP_REQUIRE(roles_.count("assistant") > 0, Exit::bad_data,
             "{}: there is no pattern for the role 'assistant', whose answers count", name);
}

void ChatTemplate::add_role(const std::string& role, const std::string& pattern) {
  const std::size_t at = pattern.find(place);
  MP_REQUIRE(at != std::string::npos && pattern.find(place, at + 1) == std::string::npos, Exit::bad_data,
             "{}: the pattern of '{}' has {{content}} not once; write it where the text stands", name_, role);
  const std::string behind = pattern.substr(at + place.size());
  const std::size_t end = behind.find_last_not_of(spaces);
  const std::size_t learned = end == std::string::npos ? 0 : end + 1;
  roles_[role] = {pattern.substr(0, at), behind.substr(0, learned), behind.substr(learned)};
}

std::optional<TokenId> ChatTemplate::end_of_answer(const Tokenizer& tokenizer) const {
  const std::vector<TokenId> ids =
      tokenizer.encoder()->encode(roles_.at("assistant").end, SpecialText::tokens);
  return ids.size() == 1 ? std::optional(ids.front()) : std::nullopt;
}

void ChatTemplate::warn_without_end(const Tokenizer& tokenizer) const {
  if (roles_.at("assistant").end.empty() || end_of_answer(tokenizer)) return;
  warning(
      "the tokenizer {} has no token '{}', which ends an answer in the template {}: the template's marks are "
      "written as letters, and generate does not see where an answer ends",
      tokenizer.name(), printable(roles_.at("assistant").end, 64), name_);
}

std::vector<ChatPart> ChatTemplate::parts(const std::vector<Message>& messages, bool asks) const {
  std::vector<ChatPart> parts;
  const auto add = [&](const std::string& text, bool is_markup, bool counts) {
    if (text.empty()) return;
    if (is_markup && !parts.empty() && parts.back().is_markup && parts.back().counts == counts)
      parts.back().text += text;
    else parts.push_back({text, is_markup, counts});
  };
  add(begin_, true, false);
  for (const Message& message : messages) {
    const auto role = roles_.find(message.role);
    MP_REQUIRE(role != roles_.end(), Exit::bad_data, "the template {} has no pattern for the role '{}'",
               name_, message.role);
    const bool counts = message.role == "assistant";
    add(role->second.before, true, false);
    add(trims_ ? trimmed(message.text) : message.text, false, counts);
    add(role->second.end, true, counts);
    add(role->second.after, true, false);
  }
  if (asks) add(roles_.at("assistant").before, true, false);
  return parts;
}

}  // namespace mindpipe
