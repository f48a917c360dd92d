#pragma once
#include <cstdint>
#include <span>
#include <string>

namespace mindpipe {

/// Describes what a .bin/.idx pair or a .txt file holds: counts, type, a histogram of the documents' lengths,
/// and its first `show` tokens as numbers and as text. Several lines.
std::string inspect_file(const std::string& path, std::int64_t show);

/// Tokens as text on one line: bytes as they are, \n or \xNN, the end of a text as <end>, ids beyond as <id>.
std::string printable(std::span<const std::int32_t> tokens);

}  // namespace mindpipe
