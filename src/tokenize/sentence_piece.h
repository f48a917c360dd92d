#pragma once
#include <memory>
#include <string>

#include "tokenize/tokenizer.h"

namespace mindpipe {

/// The tokenizer of a SentencePiece .model, by the library of that name.
std::unique_ptr<Tokenizer> load_sentence_piece(const std::string& path);

}  // namespace mindpipe
