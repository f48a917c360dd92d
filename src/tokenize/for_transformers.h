#pragma once
#include <string>

#include "tokenize/tokenizer.h"

namespace mindpipe {

/// The tokenizer_config.json by which AutoTokenizer of Hugging Face's transformers opens a tokenizer's files;
/// "" where they bring one, or where it takes more than them to tell.
std::string settings_for_transformers(const Tokenizer& tokenizer);

}  // namespace mindpipe
