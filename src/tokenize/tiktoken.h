#pragma once
#include <memory>
#include <string>

#include "tokenize/tokenizer.h"

namespace mindpipe {

/// The tokenizer of a file of ranks as tiktoken has them, with the named pattern: gpt2, cl100k, o200k or
/// llama3. An empty name means the pattern that the file's name begins with or has in it.
std::unique_ptr<Tokenizer> load_tiktoken(const std::string& path, const std::string& pattern);
/// The pattern of that name; another name is refused.
std::string split_pattern(const std::string& name);
/// Whether a file's first line is a rank as tiktoken writes it: base64, a space, a number.
bool has_ranks(const std::string& path);

}  // namespace mindpipe
