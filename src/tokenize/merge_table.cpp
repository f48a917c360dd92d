#include "tokenize/merge_table.h"

#include <bit>

#include "core/check.h"

namespace mindpipe {

MergeTable::MergeTable(std::size_t count)
    : slots_(std::bit_ceil(2 * count + 2)),
      mask_(slots_.size() - 1),
      shift_(64 - std::countr_zero(slots_.size())) {}

void MergeTable::add(TokenId left, TokenId right, std::uint32_t rank, TokenId id) {
  const std::uint64_t pair = pair_of(left, right);
  std::size_t at = place_of(pair);
  while (slots_[at].pair != none && slots_[at].pair != pair) at = (at + 1) & mask_;
  slots_[at] = {pair, rank, id};
}

MergeTable merges_of(const std::vector<TextPair>& pairs, const Vocabulary& vocabulary,
                     const std::string& prefix) {
  MergeTable table(pairs.size());
  for (std::size_t rank = 0; rank < pairs.size(); ++rank) {
    const std::string &left = pairs[rank].first, &right = pairs[rank].second;
    const std::string joined =
        left + (prefix.empty() || !right.starts_with(prefix) ? right : right.substr(prefix.size()));
    const auto id_of = [&](const std::string& text) {
      const auto id = vocabulary.id_of(text);
      MP_REQUIRE(id.has_value(), Exit::bad_data,
                 "merge {} joins '{}' and '{}', and '{}' is no token of the vocabulary; take both from one "
                 "tokenizer",
                 rank + 1, left, right, text);
      return *id;
    };
    const TokenId first = id_of(left), second = id_of(right);
    table.add(first, second, static_cast<std::uint32_t>(rank), id_of(joined));
  }
  return table;
}

MergeTable merges_of_ranks(const std::vector<std::string>& tokens, const IdOfText& ranks) {
  struct Found {
    TokenId left, right, id;
  };
  std::vector<Found> found;
  for (const std::string& token : tokens) {
    const std::string_view text = token;
    for (std::size_t cut = 1; cut < text.size(); ++cut) {
      const auto left = ranks.find(text.substr(0, cut));
      if (left == ranks.end()) continue;
      const auto right = ranks.find(text.substr(cut));
      if (right != ranks.end()) found.push_back({left->second, right->second, ranks.find(text)->second});
    }
  }
  MergeTable table(found.size());
  for (const Found& one : found) table.add(one.left, one.right, static_cast<std::uint32_t>(one.id), one.id);
  return table;
}

}  // namespace mindpipe
