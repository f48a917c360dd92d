#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "core/check.h"

namespace mindpipe {

/// What a JSON text is, for complaints about it, and how deep it may be nested.
struct JsonText {
  std::string path;
  std::string expected;           ///< "the header of a safetensors file"
  std::string part = "the file";  ///< whose text it is
  Exit code = Exit::bad_data;
  int deepest = 3;                                     ///< brackets within brackets
  std::int64_t largest = std::int64_t{16} << 20;       ///< bytes of a file
  std::int64_t most_memory = std::int64_t{128} << 20;  ///< bytes that its values take when they are read
  std::size_t begins = 0;                              ///< byte of the file where the text begins
};

/// Parses JSON from anybody: refuses keys that stand twice in one object, nesting deeper than `text.deepest`,
/// numbers beyond every type, and values that take more memory than `text.most_memory`.
nlohmann::json parse_json(std::string_view json, const JsonText& text);

/// The JSON of a file of at most `text.largest` bytes.
nlohmann::json read_json_file(const JsonText& text);

}  // namespace mindpipe
