#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "tokenize/word_model.h"

namespace mindpipe {

/// BERT's words: the longest token that a word begins with, then the longest of its rest, which `prefix`
/// marks.
class WordPiece final : public WordModel {
 public:
  WordPiece(Vocabulary vocabulary, std::string unknown, std::string prefix, std::size_t longest_word);
  void append(std::string_view word, WordBuffers& buffers, std::vector<TokenId>& ids) const override;
  void append_invalid(std::string_view, WordBuffers&, std::vector<TokenId>& ids) const override {
    ids.push_back(unknown_id_);
  }
  const Vocabulary& vocabulary() const override { return vocabulary_; }
  std::string unknown() const override { return unknown_; }

 private:
  Vocabulary vocabulary_;
  std::string unknown_, prefix_;
  std::size_t longest_word_;   ///< in characters; a longer word is unknown
  std::size_t longest_token_;  ///< in bytes
  TokenId unknown_id_ = 0;
};

/// Whether a vocabulary of words, or its tokenizer, tells capitals from other letters.
template <class Words>
bool is_cased(const Words& words) {
  return words.id_of("A").has_value() && words.id_of("B").has_value();
}

}  // namespace mindpipe
