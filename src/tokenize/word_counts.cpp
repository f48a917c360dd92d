#include "tokenize/word_counts.h"

#include "tokenize/utf8.h"

namespace mindpipe {

void WordCounts::add(std::string_view text) {
  while (!text.empty()) {
    const std::size_t valid = valid_prefix(text);
    if (valid > 0) splits_.split({text.substr(0, valid), false}, matcher_, *this);
    text.remove_prefix(valid);
    const std::size_t invalid = invalid_prefix(text);
    if (invalid > 0) count(text.substr(0, invalid), 1);
    text.remove_prefix(invalid);
  }
}

void WordCounts::add(const Counts& others) {
  for (const auto& [word, times] : others) count(word, times);
}

void WordCounts::count(std::string_view word, std::int64_t times) {
  const auto found = counts_.find(word);
  if (found != counts_.end()) found->second += times;
  else counts_.emplace(word, times);
}

}  // namespace mindpipe
