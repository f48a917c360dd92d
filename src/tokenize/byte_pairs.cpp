#include "tokenize/byte_pairs.h"

#include <algorithm>

#include "core/check.h"
#include "tokenize/unicode.h"

namespace mindpipe {

namespace {

/// Words of up to this many symbols are searched whole for each merge; longer ones pay for a heap.
constexpr std::size_t short_word = 48;
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
bool is_later(const Candidate& one, const Candidate& other) {
  return one.rank != other.rank ? one.rank > other.rank : one.place > other.place;
}

void merge_long(const MergeTable& merges, WordBuffers& buffers) {
  auto& symbols = buffers.symbols;
  auto& heap = buffers.heap;
  const auto count = static_cast<std::int32_t>(buffers.ids.size());
  symbols.resize(static_cast<std::size_t>(count));
  heap.clear();
  const auto merge_at = [&](std::int32_t place) -> const MergeTable::Merge* {
    if (place < 0 || symbols[place].after < 0) return nullptr;
    return merges.find(symbols[place].id, symbols[symbols[place].after].id);
  };
  for (std::int32_t i = 0; i < count; ++i) symbols[i] = {buffers.ids[i], i - 1, i + 1 < count ? i + 1 : -1};
  for (std::int32_t i = 0; i < count; ++i)
    if (const auto* merge = merge_at(i)) heap.push_back({merge->rank, i, merge->id});
  std::make_heap(heap.begin(), heap.end(), is_later);
  const auto offer = [&](std::int32_t place) {
    const auto* merge = merge_at(place);
    if (merge == nullptr) return;
    heap.push_back({merge->rank, place, merge->id});
    std::push_heap(heap.begin(), heap.end(), is_later);
  };
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), is_later);
    const Candidate best = heap.back();
    heap.pop_back();
    Symbol& symbol = symbols[best.place];
    if (symbol.id < 0) continue;  // it was merged into the one before it
    const auto* merge = merge_at(best.place);
    if (merge == nullptr || merge->rank != best.rank) continue;
    Symbol& gone = symbols[symbol.after];
    symbol.id = merge->id;
    symbol.after = gone.after;
    gone.id = -1;
    if (symbol.after >= 0) symbols[symbol.after].before = best.place;
    offer(best.place);
    offer(symbol.before);
  }
  buffers.ids.clear();
  for (std::int32_t at = 0; at >= 0 && at < count; at = symbols[at].after)
    buffers.ids.push_back(symbols[at].id);
}

}  // namespace

void merge_all(const MergeTable& merges, WordBuffers& buffers) {
  if (buffers.ids.size() <= short_word) merge_short(merges, buffers);
  else merge_long(merges, buffers);
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
