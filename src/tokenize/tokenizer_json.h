#pragma once
#include <memory>
#include <string>

#include "tokenize/tokenizer.h"

namespace mindpipe {

/// The tokenizer of Hugging Face's tokenizer.json. A tokenizer_config.json beside it names its end, start,
/// padding and mask.
std::unique_ptr<Tokenizer> load_tokenizer_json(const std::string& path);
/// The tokenizer of GPT-2's vocab.json with merges.txt beside it.
std::unique_ptr<Tokenizer> load_vocabulary_and_merges(const std::string& vocabulary_path);
/// The tokenizer of BERT's vocab.txt, one token a line.
std::unique_ptr<Tokenizer> load_word_pieces(const std::string& path);

}  // namespace mindpipe
