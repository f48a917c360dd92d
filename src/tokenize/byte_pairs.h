#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenize/merge_table.h"
#include "tokenize/word_model.h"

namespace mindpipe {

/// What a model of byte pairs may have beside vocabulary and merges.
struct BytePairOptions {
  bool of_bytes = false;  ///< words are bytes, which the vocabulary writes as letters
  bool byte_fallback = false, ignore_merges = false, fuse_unknown = false;
  std::string unknown, prefix, suffix;  ///< prefix of symbols within a word, suffix of its last
};

/// Byte-pair encoding: of all neighbours that may merge, the first with the lowest rank does, until none may.
class BytePairs final : public WordModel {
 public:
  BytePairs(Vocabulary vocabulary, MergeTable merges, BytePairOptions options);

  void append(std::string_view word, WordBuffers& buffers, std::vector<TokenId>& ids) const override;
  void append_invalid(std::string_view bytes, WordBuffers& buffers, std::vector<TokenId>& ids) const override;
  const Vocabulary& vocabulary() const override { return vocabulary_; }
  std::string unknown() const override { return options_.unknown; }

 private:
  std::optional<TokenId> whole(std::string_view word, WordBuffers& buffers) const;
  void begin_with_bytes(std::string_view word, std::vector<TokenId>& symbols) const;
  void begin_with_characters(std::string_view word, WordBuffers& buffers) const;
  bool append_fallback(std::string_view bytes, std::vector<TokenId>& symbols) const;

  Vocabulary vocabulary_;
  MergeTable merges_;
  BytePairOptions options_;
  std::array<TokenId, 256> letters_;    ///< ids of single bytes; -1 where there is none
  std::array<TokenId, 256> fallbacks_;  ///< ids of <0x00> to <0xFF>
  std::optional<TokenId> unknown_;
};

/// Merges `buffers.ids` until no neighbours may merge. n symbols cost n log n.
void merge_all(const MergeTable& merges, WordBuffers& buffers);

}  // namespace mindpipe
