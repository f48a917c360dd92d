#include "corpus/import.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/check.h"
#include "core/mapped_file.h"
#include "tokenize/byte_tokenizer.h"

namespace mindpipe {

namespace {
using Json = nlohmann::json;

bool blank(std::string_view line) { return line.find_first_not_of(" \t\r\n\f\v") == std::string_view::npos; }

std::string keys_of(const Json& object) {
  std::string keys;
  for (const auto& [key, value] : object.items()) {
    if (keys.size() > 200) return keys + ", ...";
    if (!keys.empty()) keys += ", ";
    keys += key;
  }
  return keys.empty() ? "none" : keys;
}

/// Text that line `number` of a jsonl file holds under `key`.
std::string text_of(const std::string& path, std::int64_t number, const std::string& line,
                    const std::string& key) {
  Json object;
  try {
    object = Json::parse(line);
  } catch (const Json::parse_error& error) {
    fail(Exit::bad_data,
         "{}: line {}, byte {}: not valid JSON (expected one object a line, in UTF-8); mend the line or "
         "remove it",
         path, number, error.byte);
  }
  MP_REQUIRE(object.is_object(), Exit::bad_data,
             "{}: line {}: the line is of type {} (expected one JSON object a line)", path, number,
             object.type_name());
  const auto found = object.find(key);
  MP_REQUIRE(found != object.end(), Exit::bad_data,
             "{}: line {}: there is no key '{}' (the keys are: {}); name the one that holds the text", path,
             number, key, keys_of(object));
  MP_REQUIRE(found->is_string(), Exit::bad_data, "{}: line {}: '{}' is of type {} (expected string)", path,
             number, key, found->type_name());
  return found->get<std::string>();
}
}  // namespace

TextFormat text_format_of(const std::string& name, const std::string& path) {
  if (name == "auto")
    return path.ends_with(".jsonl") || path.ends_with(".json") ? TextFormat::jsonl : TextFormat::text;
  if (const auto format = kind_named<TextFormat>(name)) return *format;
  fail(Exit::usage, "there is no format '{}'; choose auto, text, paragraphs or jsonl", name);
}

void TextImport::add(std::string_view text) {
  if (text.empty()) return;
  begun_ = true;
  writer_.add(ByteTokenizer::ids_of(text));
}

void TextImport::end_document() {
  if (!begun_) {
    ++left_out_;
    return;
  }
  if (end_of_text_) writer_.add({{ByteTokenizer::end_of_text}});
  writer_.end_document();
  begun_ = false;
}

void TextImport::read(const std::string& path, TextFormat format, const std::string& key) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail_to_open(path, errno, Exit::io_error);
  MP_REQUIRE(!std::filesystem::is_directory(path), Exit::bad_data,
             "{}: not an ordinary file; name the file itself", path);
  if (format == TextFormat::text) {
    std::string piece(std::size_t{1} << 16, '\0');
    while (file.read(piece.data(), static_cast<std::streamsize>(piece.size())) || file.gcount() > 0)
      add(std::string_view(piece).substr(0, static_cast<std::size_t>(file.gcount())));
    end_document();
  } else {
    std::int64_t number = 0;
    for (std::string line; std::getline(file, line);) {
      ++number;
      if (format == TextFormat::jsonl) {
        if (blank(line)) continue;
        add(text_of(path, number, line, key));
        end_document();
      } else if (!blank(line)) {
        if (!file.eof()) line += '\n';
        add(line);
      } else if (begun_) {
        end_document();
      }
    }
    if (begun_) end_document();
  }
  MP_REQUIRE(!file.bad(), Exit::io_error, "{}: reading failed ({})", path, std::strerror(errno));
}

}  // namespace mindpipe
