#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tokenize/pre_tokenizer.h"
#include "tokenize/vocabulary.h"

namespace mindpipe {

/// How often each word stands in the texts that one thread was given; words are bytes.
class WordCounts final : private PieceSink {
 public:
  explicit WordCounts(const PreTokenizer& splits) : splits_(splits) {}
  /// Counts the words of a text. Bytes that are no UTF-8 are words of their own.
  void add(std::string_view text);

  using Counts = std::unordered_map<std::string, std::int64_t, HashOfText, std::equal_to<>>;
  /// Adds the counts of another thread.
  void add(const Counts& others);
  const Counts& counts() const { return counts_; }

 private:
  void take(const TextPiece& piece) override { count(piece.text, 1); }
  void count(std::string_view word, std::int64_t times);

  const PreTokenizer& splits_;
  Matcher matcher_;
  Counts counts_;
};

}  // namespace mindpipe
