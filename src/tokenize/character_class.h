#pragma once
#include <string>
#include <string_view>

#include "tokenize/pattern_reader.h"

namespace mindpipe {

/// Members of a class: what Oniguruma takes between brackets for a word's characters, and for hexadecimal
/// digits.
constexpr std::string_view members_of_words = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";
constexpr std::string_view members_of_hexadecimal = "0-9A-Fa-f";

/// Reads a class with its brackets and writes it for PCRE2: classes within it are joined, && becomes a look
/// ahead.
std::string read_class(PatternReader& reader, bool ignores_case);

}  // namespace mindpipe
