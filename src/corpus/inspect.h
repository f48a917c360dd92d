#pragma once
#include <cstdint>
#include <span>
#include <string>

namespace mindpipe {

/// Describes what a .bin/.idx pair or a .txt file holds: counts, type, a histogram of the documents' lengths,
/// and its first `show` tokens as numbers and as text. Several lines. The text is written by `tokenizer`; if
/// it is empty, by the one that PREFIX.json names, where that is still there, else a token is a byte. Tokens
/// of another tokenizer are refused. Of answers, ⟦ and ⟧ stand around what counts.
std::string inspect_file(const std::string& path, std::int64_t show, const std::string& tokenizer = "");

/// Tokens as text on one line: bytes as they are, \n or \xNN, the end of a text as <end>, ids beyond as <id>.
std::string printable(std::span<const std::int32_t> tokens);

}  // namespace mindpipe
