#include "tokenize/template.h"

#include <algorithm>

#include "core/check.h"

namespace mindpipe {

namespace {

using Part = SequenceTemplate::Part;

TemplatedIds filled(const std::vector<Part>& parts, std::span<const TokenId> first,
                    std::span<const TokenId> second) {
  TemplatedIds whole;
  for (const Part& part : parts) {
    const std::span<const TokenId> ids = part.sequence == 0   ? first
                                         : part.sequence == 1 ? second
                                                              : std::span<const TokenId>(part.ids);
    whole.ids.insert(whole.ids.end(), ids.begin(), ids.end());
    whole.types.resize(whole.ids.size(), part.type);
  }
  return whole;
}

/// The id of a post-processor's ["[SEP]", 102].
TokenId id_of_pair(const Json& described, const char* key) {
  const Json& pair = list_of(described, key);
  MP_REQUIRE(pair.size() == 2 && pair[1].is_number_unsigned() && pair[1].get<std::uint64_t>() < (1U << 24),
             Exit::bad_data, "'{}' is {} (expected a token and its id)", key, pair.dump().substr(0, 80));
  return pair[1].get<TokenId>();
}

std::vector<TokenId> ids_of_special(const Json& described, const std::string& name) {
  const Json* tokens = value_of(described, "special_tokens");
  const Json* token = tokens != nullptr ? value_of(*tokens, name.c_str()) : nullptr;
  MP_REQUIRE(token != nullptr, Exit::bad_data,
             "the template has the token '{}', which its 'special_tokens' lack", name);
  std::vector<TokenId> ids;
  for (const Json& id : list_of(*token, "ids")) {
    MP_REQUIRE(id.is_number_unsigned() && id.get<std::uint64_t>() < (1U << 24), Exit::bad_data,
               "an id of '{}' is {} (expected an id)", name, id.dump().substr(0, 80));
    ids.push_back(id.get<TokenId>());
  }
  return ids;
}

/// A sequence stands in a template once. The pair may lack it, as a template that serves no pairs does.
void require_once(const std::vector<Part>& parts, const char* key, int sequence, std::string_view name,
                  bool needed) {
  const auto times =
      std::count_if(parts.begin(), parts.end(), [&](const Part& part) { return part.sequence == sequence; });
  MP_REQUIRE(times == 1 || (times == 0 && !needed), Exit::bad_data,
             "the template '{}' has the sequence {} {} times (expected once)", key, name, times);
}

std::vector<Part> parts_of(const Json& described, const char* key, bool pair) {
  std::vector<Part> parts;
  for (const Json& one : list_of(described, key)) {
    Part part;
    if (const Json* sequence = value_of(one, "Sequence")) {
      const std::string id = text_of(*sequence, "id");
      MP_REQUIRE(id == "A" || (id == "B" && pair), Exit::bad_data, "the template '{}' has the sequence '{}'",
                 key, id);
      part.sequence = id == "A" ? 0 : 1;
      part.type = static_cast<std::int32_t>(number_of(*sequence, "type_id", 0));
    } else {
      const Json* token = value_of(one, "SpecialToken");
      MP_REQUIRE(token != nullptr, Exit::bad_data,
                 "a part of the template '{}' is neither sequence nor token", key);
      part.ids = ids_of_special(described, text_of(*token, "id"));
      part.type = static_cast<std::int32_t>(number_of(*token, "type_id", 0));
    }
    parts.push_back(std::move(part));
  }
  require_once(parts, key, 0, "A", !pair);
  if (pair) require_once(parts, key, 1, "B", false);
  return parts;
}

/// The only template of a sequence of post-processors: others that it may hold add no ids.
SequenceTemplate template_of_sequence(const Json& described) {
  const Json* chosen = nullptr;
  for (const Json& one : list_of(described, "processors")) {
    if (text_of(one, "type") == "ByteLevel") continue;
    MP_REQUIRE(chosen == nullptr, Exit::bad_data,
               "a sequence of two post-processors that add tokens is not built; join their templates");
    chosen = &one;
  }
  return chosen != nullptr ? make_template(*chosen) : SequenceTemplate();
}

}  // namespace

SequenceTemplate::SequenceTemplate(std::vector<Part> single, std::vector<Part> pair)
    : single_(std::move(single)), pair_(std::move(pair)) {}

TemplatedIds SequenceTemplate::of(std::span<const TokenId> ids) const { return filled(single_, ids, {}); }
TemplatedIds SequenceTemplate::of(std::span<const TokenId> first, std::span<const TokenId> second) const {
  return filled(pair_, first, second);
}

std::optional<TokenId> SequenceTemplate::last_of_single() const {
  if (single_.empty() || single_.back().ids.size() != 1) return std::nullopt;
  return single_.back().ids.front();
}

std::optional<TokenId> SequenceTemplate::first_of_single() const {
  if (single_.empty() || single_.front().ids.size() != 1) return std::nullopt;
  return single_.front().ids.front();
}

TokenId SequenceTemplate::largest_id() const {
  TokenId largest = -1;
  for (const auto* parts : {&single_, &pair_})
    for (const Part& part : *parts)
      for (const TokenId id : part.ids) largest = std::max(largest, id);
  return largest;
}

SequenceTemplate bert_template(TokenId start, TokenId separator) {
  return {{{-1, {start}, 0}, {0, {}, 0}, {-1, {separator}, 0}},
          {{-1, {start}, 0}, {0, {}, 0}, {-1, {separator}, 0}, {1, {}, 1}, {-1, {separator}, 1}}};
}

SequenceTemplate make_template(const Json& described) {
  const std::string type = text_of(described, "type");
  if (type == "ByteLevel") return {};
  if (type == "BertProcessing")
    return bert_template(id_of_pair(described, "cls"), id_of_pair(described, "sep"));
  if (type == "RobertaProcessing") {
    const TokenId start = id_of_pair(described, "cls"), end = id_of_pair(described, "sep");
    return {{{-1, {start}, 0}, {0, {}, 0}, {-1, {end}, 0}},
            {{-1, {start}, 0}, {0, {}, 0}, {-1, {end, end}, 0}, {1, {}, 0}, {-1, {end}, 0}}};
  }
  if (type == "TemplateProcessing")
    return {parts_of(described, "single", false), parts_of(described, "pair", true)};
  if (type == "Sequence") return template_of_sequence(described);
  fail(Exit::bad_data,
       "the post-processor {} is not built; there are ByteLevel, BertProcessing, RobertaProcessing, "
       "TemplateProcessing and Sequence",
       type);
}

}  // namespace mindpipe
