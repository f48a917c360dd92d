#pragma once
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "tokenize/tokenizer.h"

namespace mindpipe {

/// Short words and their ids, each at the one place that its hash gives it: a new word takes the place of an
/// old one.
class WordCache {
 public:
  static constexpr std::size_t longest_word = 30, most_ids = 8;

  WordCache() : entries_(places) {}
  /// The ids of a word that is there; empty when it is not.
  std::span<const TokenId> find(std::string_view word) const {
    const Entry& entry = entries_[place_of(word)];
    if (entry.bytes != word.size() || std::memcmp(entry.word.data(), word.data(), word.size()) != 0)
      return {};
    return {entry.ids.data(), entry.count};
  }
  void keep(std::string_view word, std::span<const TokenId> ids);

 private:
  static constexpr std::size_t places = std::size_t{1} << 15;
  struct Entry {
    std::uint8_t bytes = 0, count = 0;
    std::array<char, longest_word> word;
    std::array<TokenId, most_ids> ids;
  };
  static std::size_t place_of(std::string_view word) {
    std::uint64_t hash = word.size() * 0x9e3779b97f4a7c15ULL;
    const char* at = word.data();
    std::size_t left = word.size();
    for (; left >= 8; left -= 8, at += 8) hash = mixed(hash, eight(at, 8));
    return static_cast<std::size_t>(mixed(hash, eight(at, left)) >> 49);
  }
  static std::uint64_t eight(const char* at, std::size_t bytes) {
    std::uint64_t value = 0;
    std::memcpy(&value, at, bytes);
    return value;
  }
  static std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
    hash = (hash ^ value) * 0xff51afd7ed558ccdULL;
    return hash ^ hash >> 32;
  }

  std::vector<Entry> entries_;
};

inline void WordCache::keep(std::string_view word, std::span<const TokenId> ids) {
  if (word.empty() || word.size() > longest_word || ids.empty() || ids.size() > most_ids) return;
  Entry& entry = entries_[place_of(word)];
  entry.bytes = static_cast<std::uint8_t>(word.size());
  entry.count = static_cast<std::uint8_t>(ids.size());
  std::memcpy(entry.word.data(), word.data(), word.size());
  std::memcpy(entry.ids.data(), ids.data(), ids.size_bytes());
}

}  // namespace mindpipe
