#include "corpus/token_origin.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/input_file.h"
#include "corpus/token_writer.h"

namespace mindpipe {
namespace {

using Json = nlohmann::ordered_json;

std::string path_of(const std::string& prefix) { return prefix + ".json"; }

std::string text_at(const Json& object, const char* key, const std::string& path) {
  const auto found = object.find(key);
  MP_REQUIRE(found != object.end() && found->is_string(), Exit::bad_data,
             "{}: there is no text under '{}'; import the texts again", path, key);
  return found->get<std::string>();
}

std::int64_t number_at(const Json& object, const char* key, const std::string& path) {
  const auto found = object.find(key);
  MP_REQUIRE(found != object.end() && found->is_number_integer() && found->get<std::int64_t>() >= 0,
             Exit::bad_data, "{}: there is no number of 0 or more under '{}'; import the texts again", path,
             key);
  return found->get<std::int64_t>();
}

}  // namespace

std::string hash_of(const Tokenizer& tokenizer) { return to_string(tokenizer.digest()); }

void write_origin(const std::string& prefix, const TokenOrigin& origin) {
  Json object{{"tokenizer", origin.tokenizer},
              {"tokenizer_sha256", origin.hash},
              {"vocabulary", origin.vocabulary},
              {"documents", origin.documents},
              {"tokens", origin.tokens}};
  if (origin.counted >= 0) object["counted_tokens"] = origin.counted;
  object["sources"] = origin.sources;
  UnfinishedFile unfinished(path_of(prefix) + ".unfinished");
  std::ofstream file = create_file(unfinished.path());
  file << object.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
  file.close();
  MP_REQUIRE(file.good() && unfinished.becomes(path_of(prefix)), Exit::io_error,
             "{}: writing failed ({}); check the space on the disk", path_of(prefix), std::strerror(errno));
}

std::optional<TokenOrigin> read_origin(const std::string& prefix) {
  const std::string path = path_of(prefix);
  constexpr std::int64_t most = std::int64_t{16} << 20;
  const std::optional<std::string> text = read_text_if_there(path, most);
  if (!text) return std::nullopt;
  const Json object = Json::parse(*text, nullptr, false);
  MP_REQUIRE(object.is_object(), Exit::bad_data, "{}: not a JSON object (expected what data import wrote)",
             path);
  TokenOrigin origin{
      .tokenizer = text_at(object, "tokenizer", path),
      .hash = text_at(object, "tokenizer_sha256", path),
      .vocabulary = number_at(object, "vocabulary", path),
      .documents = number_at(object, "documents", path),
      .tokens = number_at(object, "tokens", path),
      .counted = object.contains("counted_tokens") ? number_at(object, "counted_tokens", path) : -1,
      .sources = {}};
  return origin;
}

void require_tokens_of(const std::string& prefix, const std::string& tokenizer, const std::string& hash) {
  const std::optional<TokenOrigin> origin = read_origin(prefix);
  MP_REQUIRE(!origin || origin->hash == hash, Exit::bad_configuration,
             "{}: its tokens are those of the tokenizer {} (SHA-256 {}), and the run's data.tokenizer is {} "
             "(SHA-256 "
             "{}); name that tokenizer, or import the texts with this one",
             path_of(prefix), origin->tokenizer, origin->hash.substr(0, 16), tokenizer, hash.substr(0, 16));
}

}  // namespace mindpipe
