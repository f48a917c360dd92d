#include "tokenize/byte_pairs.h"

#include <algorithm>
#include <functional>

#include "core/check.h"
#include "tokenize/unicode.h"

namespace mindpipe {

namespace {

/// Words of up to this many symbols are searched whole for each merge; longer ones pay for a heap, and still
/// longer ones for a list of places for each rank.
constexpr std::size_t short_word = 48, heaped_word = 4096;
constexpr std::uint32_t most_ranks = 1 << 20;  ///< ranks below it have a list of places
constexpr std::uint32_t no_rank = ~std::uint32_t{0};

void merge_short(const MergeTable& merges, WordBuffers& buffers) {
  auto& ids = buffers.ids;
  auto& ranks = buffers.ranks;
  auto& made = buffers.symbols;  // what a place becomes stands in its symbol
  std::size_t count = ids.size();
  ranks.resize(count);
  made.resize(count);
  const auto look = [&](std::size_t at) {
    const MergeTable::Merge* merge = at + 1 < count ? merges.find(ids[at], ids[at + 1]) : nullptr;
    ranks[at] = merge != nullptr ? merge->rank : no_rank;
    if (merge != nullptr) made[at].id = merge->id;
  };
  for (std::size_t at = 0; at < count; ++at) look(at);
  while (count > 1) {
    const auto best = static_cast<std::size_t>(
        std::min_element(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(count)) - ranks.begin());
    if (ranks[best] == no_rank) break;
    ids[best] = made[best].id;
    for (std::size_t at = best + 1; at + 1 < count; ++at) {
      ids[at] = ids[at + 1];
      ranks[at] = ranks[at + 1];
      made[at].id = made[at + 1].id;
    }
    --count;
    look(best);
    if (best > 0) look(best - 1);
  }
  ids.resize(count);
}

/// Whether `one` is done after `other`: the order of the heap.
bool is_later(const MergeCandidate& one, const MergeCandidate& other) {
  return one.rank != other.rank ? one.rank > other.rank : one.place > other.place;
}

/// The symbols of a long word as a list, from which merged ones go.
class SymbolList {
 public:
  SymbolList(const MergeTable& merges, WordBuffers& buffers)
      : merges_(merges), symbols_(buffers.symbols), count_(static_cast<std::int32_t>(buffers.ids.size())) {
    symbols_.resize(buffers.ids.size());
    for (std::int32_t i = 0; i < count_; ++i)
      symbols_[i] = {buffers.ids[i], i - 1, i + 1 < count_ ? i + 1 : -1};
  }
  std::int32_t size() const { return count_; }
  /// The merge of the symbol at a place with the one behind it; nothing where there is none.
  const MergeTable::Merge* merge_at(std::int32_t place) const {
    if (place < 0 || symbols_[place].id < 0 || symbols_[place].after < 0) return nullptr;
    return merges_.find(symbols_[place].id, symbols_[symbols_[place].after].id);
  }
  /// Merges there, and gives the place before it.
  std::int32_t merge(std::int32_t place, TokenId id) {
    Symbol& symbol = symbols_[place];
    Symbol& gone = symbols_[symbol.after];
    symbol.id = id;
    symbol.after = gone.after;
    gone.id = -1;
    if (symbol.after >= 0) symbols_[symbol.after].before = place;
    return symbol.before;
  }
  void give(std::vector<TokenId>& ids) const {
    ids.clear();
    for (std::int32_t at = 0; at >= 0 && at < count_; at = symbols_[at].after) ids.push_back(symbols_[at].id);
  }

 private:
  const MergeTable& merges_;
  std::vector<Symbol>& symbols_;
  std::int32_t count_;
};

void merge_long(const MergeTable& merges, WordBuffers& buffers) {
  auto& heap = buffers.heap;
  SymbolList symbols(merges, buffers);
  heap.clear();
  for (std::int32_t i = 0; i < symbols.size(); ++i)
    if (const auto* merge = symbols.merge_at(i)) heap.push_back({merge->rank, i, merge->id});
  std::make_heap(heap.begin(), heap.end(), is_later);
  const auto offer = [&](std::int32_t place) {
    const auto* merge = symbols.merge_at(place);
    if (merge == nullptr) return;
    heap.push_back({merge->rank, place, merge->id});
    std::push_heap(heap.begin(), heap.end(), is_later);
  };
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), is_later);
    const MergeCandidate best = heap.back();
    heap.pop_back();
    const auto* merge = symbols.merge_at(best.place);
    if (merge == nullptr || merge->rank != best.rank) continue;  // it was merged into the one before it
    const std::int32_t before = symbols.merge(best.place, merge->id);
    offer(best.place);
    offer(before);
  }
  symbols.give(buffers.ids);
}

/// Merges rank by rank, the places of each from left to right. Stops with false, and leaves the ids as they
/// are, where a merge makes a pair of no higher rank, which trained merges never do.
bool merge_by_ranks(const MergeTable& merges, WordBuffers& buffers) {
  auto& places = buffers.places;
  auto& waiting = buffers.waiting;
  SymbolList symbols(merges, buffers);
  waiting.clear();
  bool rises = true;
  const auto add = [&](std::uint32_t rank, std::int32_t place) {
    rises = rises && rank < most_ranks;
    if (!rises) return;
    if (rank >= places.size()) places.resize(std::size_t{rank} + 1);
    if (places[rank].empty()) {
      waiting.push_back(rank);
      std::push_heap(waiting.begin(), waiting.end(), std::greater<>());
    }
    places[rank].push_back(place);
  };
  for (std::int32_t i = 0; i < symbols.size(); ++i)
    if (const auto* merge = symbols.merge_at(i)) add(merge->rank, i);
  while (rises && !waiting.empty()) {
    std::pop_heap(waiting.begin(), waiting.end(), std::greater<>());
    const std::uint32_t rank = waiting.back();
    waiting.pop_back();
    const std::vector<std::int32_t> at_rank = [&] {
      std::vector<std::int32_t> some;
      some.swap(places[rank]);
      if (!std::is_sorted(some.begin(), some.end())) std::sort(some.begin(), some.end());
      return some;
    }();
    const auto offer = [&](std::int32_t place) {
      const auto* merge = symbols.merge_at(place);
      if (merge == nullptr) return;
      rises = rises && merge->rank > rank;
      if (rises) add(merge->rank, place);
    };
    for (std::size_t i = 0; i < at_rank.size() && rises; ++i) {
      const auto* merge = symbols.merge_at(at_rank[i]);
      if (merge == nullptr || merge->rank != rank) continue;
      const std::int32_t before = symbols.merge(at_rank[i], merge->id);
      offer(at_rank[i]);
      offer(before);
    }
  }
  for (const std::uint32_t rank : waiting) places[rank].clear();
  if (rises) symbols.give(buffers.ids);
  return rises;
}

}  // namespace

void merge_all(const MergeTable& merges, WordBuffers& buffers) {
  if (buffers.ids.size() <= short_word) merge_short(merges, buffers);
  else if (buffers.ids.size() <= heaped_word || !merge_by_ranks(merges, buffers)) merge_long(merges, buffers);
}

BytePairs::BytePairs(Vocabulary vocabulary, MergeTable merges, BytePairOptions options)
    : vocabulary_(std::move(vocabulary)), merges_(std::move(merges)), options_(std::move(options)) {
  for (int byte = 0; byte < 256; ++byte) {
    const auto at = static_cast<std::size_t>(byte);
    letters_[at] = vocabulary_.id_of(letter_of_byte(static_cast<unsigned char>(byte))).value_or(-1);
    fallbacks_[at] = vocabulary_.id_of(fmt::format("<0x{:02X}>", byte)).value_or(-1);
  }
  if (options_.unknown.empty()) return;
  unknown_ = vocabulary_.id_of(options_.unknown);
  MP_REQUIRE(unknown_.has_value(), Exit::bad_data,
             "the unknown token '{}' is no token of the vocabulary; add it there, or name another",
             options_.unknown);
}

std::optional<TokenId> BytePairs::whole(std::string_view word, WordBuffers& buffers) const {
  if (!options_.of_bytes) return vocabulary_.id_of(word);
  buffers.text.clear();
  for (const char byte : word) buffers.text += letter_of_byte(static_cast<unsigned char>(byte));
  return vocabulary_.id_of(buffers.text);
}

void BytePairs::begin_with_bytes(std::string_view word, std::vector<TokenId>& symbols) const {
  bool last_was_unknown = false;
  for (const char letter : word) {
    const TokenId id = letters_[static_cast<unsigned char>(letter)];
    if (id >= 0) symbols.push_back(id);
    else if (unknown_ && !(options_.fuse_unknown && last_was_unknown)) symbols.push_back(*unknown_);
    last_was_unknown = id < 0;
  }
}

bool BytePairs::append_fallback(std::string_view bytes, std::vector<TokenId>& symbols) const {
  const auto id_of = [this](char byte) { return fallbacks_[static_cast<unsigned char>(byte)]; };
  if (!options_.byte_fallback ||
      std::any_of(bytes.begin(), bytes.end(), [&](char b) { return id_of(b) < 0; }))
    return false;
  std::transform(bytes.begin(), bytes.end(), std::back_inserter(symbols), id_of);
  return true;
}

void BytePairs::begin_with_characters(std::string_view word, WordBuffers& buffers) const {
  const bool plain = options_.prefix.empty() && options_.suffix.empty();
  std::size_t place = 0;
  bool waiting = false;  // an unknown character was seen, which the next one may join
  const auto flush = [&] {
    if (waiting) buffers.ids.push_back(*unknown_);
    waiting = false;
  };
  for_each_character(word, [&](char32_t, std::string_view bytes) {
    std::string_view symbol = bytes;
    if (!plain) {
      buffers.text = place > 0 ? options_.prefix : "";
      buffers.text += bytes;
      if (place + bytes.size() == word.size()) buffers.text += options_.suffix;
      symbol = buffers.text;
    }
    place += bytes.size();
    if (const auto id = vocabulary_.id_of(symbol)) {
      flush();
      buffers.ids.push_back(*id);
    } else if (!append_fallback(symbol, buffers.ids) && unknown_) {
      if (!options_.fuse_unknown) flush();
      waiting = true;
    }
  });
  flush();
}

void BytePairs::append(std::string_view word, WordBuffers& buffers, std::vector<TokenId>& ids) const {
  if (options_.ignore_merges) {
    if (const auto id = whole(word, buffers)) {
      ids.push_back(*id);
      return;
    }
  }
  buffers.ids.clear();
  if (options_.of_bytes) begin_with_bytes(word, buffers.ids);
  else begin_with_characters(word, buffers);
  merge_all(merges_, buffers);
  ids.insert(ids.end(), buffers.ids.begin(), buffers.ids.end());
}

void BytePairs::append_invalid(std::string_view bytes, WordBuffers& buffers,
                               std::vector<TokenId>& ids) const {
  if (options_.of_bytes) append(bytes, buffers, ids);
  else if (!append_fallback(bytes, ids) && unknown_) ids.push_back(*unknown_);
}

}  // namespace mindpipe
