#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "tokenize/tokenizer.h"
#include "tokenize/vocabulary.h"

namespace mindpipe {

/// One symbol of a word that is being merged, and its neighbours.
struct Symbol {
  TokenId id = 0;
  std::int32_t before = -1, after = -1;
};

/// A merge that may be done: symbols at `place` and behind it.
struct MergeCandidate {
  std::uint32_t rank = 0;
  std::int32_t place = 0;
  TokenId id = 0;
};

/// Buffers of one thread for the words of a model.
struct WordBuffers {
  std::vector<TokenId> ids;
  std::vector<std::uint32_t> ranks;
  std::vector<Symbol> symbols;
  std::vector<MergeCandidate> heap;
  std::vector<std::vector<std::int32_t>> places;  ///< by rank: where a merge may be done
  std::vector<std::uint32_t> waiting;             ///< ranks with places, as a heap
  std::string text;
};

/// Turns a word into ids: the trained part of a tokenizer.
class WordModel {
 public:
  virtual ~WordModel() = default;
  /// Appends the ids of a word. A model of bytes takes any bytes, the others UTF-8.
  virtual void append(std::string_view word, WordBuffers& buffers, std::vector<TokenId>& ids) const = 0;
  /// Appends what stands for bytes that are no UTF-8.
  virtual void append_invalid(std::string_view bytes, WordBuffers& buffers,
                              std::vector<TokenId>& ids) const = 0;
  virtual const Vocabulary& vocabulary() const = 0;
  virtual std::string unknown() const { return ""; }  ///< the unknown token; "" where there is none
};

}  // namespace mindpipe
