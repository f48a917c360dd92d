#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tokenize/vocabulary.h"

namespace mindpipe {

/// Ranks of the pairs of ids that may merge, and what they become: a table with open addresses.
class MergeTable {
 public:
  struct Merge {
    std::uint64_t pair = none;
    std::uint32_t rank = 0;
    TokenId id = 0;
  };
  static constexpr std::uint64_t none = ~std::uint64_t{0};

  MergeTable() = default;
  explicit MergeTable(std::size_t count);
  /// A later merge of a pair that has one already takes its place, as the peers' maps do.
  void add(TokenId left, TokenId right, std::uint32_t rank, TokenId id);
  const Merge* find(TokenId left, TokenId right) const {
    const std::uint64_t pair = pair_of(left, right);
    for (std::size_t at = place_of(pair);; at = (at + 1) & mask_) {
      if (slots_[at].pair == pair) return &slots_[at];
      if (slots_[at].pair == none) return nullptr;
    }
  }

 private:
  static std::uint64_t pair_of(TokenId left, TokenId right) {
    return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
  }
  std::size_t place_of(std::uint64_t pair) const {
    return static_cast<std::size_t>((pair * 0x9e3779b97f4a7c15ULL) >> shift_) & mask_;
  }

  std::vector<Merge> slots_ = std::vector<Merge>(2);
  std::size_t mask_ = 1;
  int shift_ = 63;
};

/// Two tokens that merge, as merges.txt and tokenizer.json write them.
using TextPair = std::pair<std::string, std::string>;
/// The table of merges in their order; one whose tokens the vocabulary lacks is refused. `prefix` is taken
/// off the second.
MergeTable merges_of(const std::vector<TextPair>& pairs, const Vocabulary& vocabulary,
                     const std::string& prefix);
/// The table of all pairs of tokens whose joined bytes are a token, whose id is the rank: what tiktoken
/// merges.
MergeTable merges_of_ranks(const std::vector<std::string>& tokens, const IdOfText& ranks);

}  // namespace mindpipe
