#include "tokenize/train_byte_pairs.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "core/check.h"
#include "tokenize/tiktoken.h"

namespace mindpipe {

namespace {

using Pair = std::pair<TokenId, TokenId>;
using OrderedJson = nlohmann::ordered_json;

struct HashOfPair {
  std::size_t operator()(const Pair& pair) const {
    const std::uint64_t both =
        std::uint64_t{static_cast<std::uint32_t>(pair.first)} << 32 | static_cast<std::uint32_t>(pair.second);
    return static_cast<std::size_t>((both ^ both >> 29) * 0x9e3779b97f4a7c15ULL >> 8);
  }
};

/// A pair that may become a token: how often it stood in the words when that was last counted, and words in
/// which it may stand.
struct CountedPair {
  std::int64_t count = 0;
  Pair pair;
  std::vector<std::uint32_t> words;
};
/// Whether `one` is done after `other`.
bool is_later(const CountedPair& one, const CountedPair& other) {
  return one.count != other.count ? one.count < other.count : one.pair > other.pair;
}

/// Words as symbols, which shrink while pairs of them are merged.
class Words {
 public:
  void add(const std::string& bytes, std::int64_t count, const std::array<TokenId, 256>& ids) {
    begins_.push_back(symbols_.size());
    lengths_.push_back(static_cast<std::uint32_t>(bytes.size()));
    counts_.push_back(count);
    for (const char byte : bytes) symbols_.push_back(ids[static_cast<unsigned char>(byte)]);
  }
  std::uint32_t size() const { return static_cast<std::uint32_t>(begins_.size()); }
  std::int64_t count(std::uint32_t word) const { return counts_[word]; }
  std::span<const TokenId> symbols(std::uint32_t word) const {
    return {symbols_.data() + begins_[word], lengths_[word]};
  }
  /// Makes `id` of every such pair of a word, from left to right; `tell` hears of the pairs that go (-1) and
  /// come (1) beside it.
  template <class Tell>
  void merge(std::uint32_t word, const Pair& pair, TokenId id, Tell tell) {
    TokenId* symbols = symbols_.data() + begins_[word];
    std::uint32_t length = lengths_[word];
    std::uint32_t kept = 0;
    for (std::uint32_t at = 0; at < length; ++kept) {
      if (at + 1 == length || symbols[at] != pair.first || symbols[at + 1] != pair.second) {
        symbols[kept] = symbols[at++];
        continue;
      }
      if (kept > 0) {
        tell(Pair{symbols[kept - 1], pair.first}, -1);
        tell(Pair{symbols[kept - 1], id}, 1);
      }
      at += 2;
      symbols[kept] = id;
      if (at < length) {
        tell(Pair{pair.second, symbols[at]}, -1);
        tell(Pair{id, symbols[at]}, 1);
      }
    }
    lengths_[word] = kept;
  }

 private:
  std::vector<TokenId> symbols_;
  std::vector<std::size_t> begins_;
  std::vector<std::uint32_t> lengths_;
  std::vector<std::int64_t> counts_;
};

class Training {
 public:
  Training(const TrainingRules& rules, const WordCounts::Counts& words) : rules_(rules) {
    for (const std::string& token : rules.special) add_token(token);
    add_bytes();
    std::vector<const WordCounts::Counts::value_type*> sorted;
    for (const auto& word : words) sorted.push_back(&word);
    std::sort(sorted.begin(), sorted.end(), [](auto* one, auto* other) { return one->first < other->first; });
    for (const auto* word : sorted) words_.add(word->first, word->second, bytes_);
    for (std::uint32_t word = 0; word < words_.size(); ++word) {
      const auto symbols = words_.symbols(word);
      for (std::size_t at = 0; at + 1 < symbols.size(); ++at) tell({symbols[at], symbols[at + 1]}, 1, word);
    }
    offer_fresh();
  }

  TrainedTokenizer run() {
    while (static_cast<TokenId>(texts_.size()) < rules_.vocabulary && !queue_.empty()) {
      std::pop_heap(queue_.begin(), queue_.end(), is_later);
      CountedPair top = std::move(queue_.back());
      queue_.pop_back();
      const std::int64_t count = counts_.at(top.pair);
      if (top.count != count) {  // pairs beside it were merged since
        top.count = count;
        offer(std::move(top));
        continue;
      }
      if (top.count < 1 || top.count < rules_.least_count) break;
      merge(top);
    }
    return {json(), static_cast<TokenId>(texts_.size()), last_merges().size()};
  }

 private:
  TokenId add_token(const std::string& text) {
    const auto [place, is_new] = ids_.emplace(text, static_cast<TokenId>(texts_.size()));
    if (is_new) texts_.push_back(text);
    return place->second;
  }
  /// Bytes have their ids in the order of the letters that stand for them.
  void add_bytes() {
    std::vector<std::pair<std::string, std::size_t>> letters;
    for (std::size_t byte = 0; byte < bytes_.size(); ++byte)
      letters.emplace_back(letter_of_byte(static_cast<unsigned char>(byte)), byte);
    std::sort(letters.begin(), letters.end());
    for (const auto& [letter, byte] : letters) bytes_[byte] = add_token(letter);
  }

  void tell(const Pair& pair, int change, std::uint32_t word) {
    counts_[pair] += change * words_.count(word);
    if (change < 0) return;
    std::vector<std::uint32_t>& words = fresh_[pair];
    if (words.empty() || words.back() != word) words.push_back(word);
  }
  void offer(CountedPair&& pair) {
    queue_.push_back(std::move(pair));
    std::push_heap(queue_.begin(), queue_.end(), is_later);
  }
  void offer_fresh() {
    for (auto& [pair, words] : fresh_)
      if (const std::int64_t count = counts_.at(pair); count > 0) offer({count, pair, std::move(words)});
    fresh_.clear();
  }

  /// A merged pair keeps its count. Where another merge later makes one of its tokens once more, that count
  /// decides in `tokenizers` when the pair is merged there, and so it does here.
  void merge(const CountedPair& top) {
    const TokenId id = add_token(texts_[static_cast<std::size_t>(top.pair.first)] +
                                 texts_[static_cast<std::size_t>(top.pair.second)]);
    merges_.push_back(top.pair);
    for (const std::uint32_t word : top.words)
      words_.merge(word, top.pair, id, [&](const Pair& pair, int change) { tell(pair, change, word); });
    offer_fresh();
  }

  /// The merges in their order; one that was done twice stands where it was done last.
  std::vector<Pair> last_merges() const {
    std::set<Pair> seen;
    std::vector<Pair> merges;
    for (auto merge = merges_.rbegin(); merge != merges_.rend(); ++merge)
      if (seen.insert(*merge).second) merges.push_back(*merge);
    std::reverse(merges.begin(), merges.end());
    return merges;
  }

  std::string json() const {
    OrderedJson added = OrderedJson::array();
    for (const std::string& token : rules_.special)
      added.push_back({{"id", ids_.find(token)->second},
                       {"content", token},
                       {"single_word", false},
                       {"lstrip", false},
                       {"rstrip", false},
                       {"normalized", false},
                       {"special", true}});
    const auto bytes = [](bool space, bool trim, bool regex) {
      return OrderedJson{
          {"type", "ByteLevel"}, {"add_prefix_space", space}, {"trim_offsets", trim}, {"use_regex", regex}};
    };
    OrderedJson splits = bytes(false, true, true);
    if (rules_.pattern != "gpt2")
      splits = {{"type", "Sequence"},
                {"pretokenizers",
                 {{{"type", "Split"},
                   {"pattern", {{"Regex", split_pattern(rules_.pattern)}}},
                   {"behavior", "Isolated"},
                   {"invert", false}},
                  bytes(false, true, false)}}};
    OrderedJson vocabulary = OrderedJson::object(), merges = OrderedJson::array();
    // Texts differ, which an ordered object would look for once more with each.
    auto& members = vocabulary.get_ref<OrderedJson::object_t&>();
    for (std::size_t id = 0; id < texts_.size(); ++id) members.emplace_back(texts_[id], id);
    for (const auto& [first, second] : last_merges())
      merges.push_back({texts_[static_cast<std::size_t>(first)], texts_[static_cast<std::size_t>(second)]});
    const OrderedJson whole{{"version", "1.0"},
                            {"truncation", nullptr},
                            {"padding", nullptr},
                            {"added_tokens", added},
                            {"normalizer", nullptr},
                            {"pre_tokenizer", splits},
                            {"post_processor", bytes(true, false, true)},
                            {"decoder", bytes(true, true, true)},
                            {"model",
                             {{"type", "BPE"},
                              {"dropout", nullptr},
                              {"unk_token", nullptr},
                              {"continuing_subword_prefix", nullptr},
                              {"end_of_word_suffix", nullptr},
                              {"fuse_unk", false},
                              {"byte_fallback", false},
                              {"ignore_merges", false},
                              {"vocab", vocabulary},
                              {"merges", merges}}}};
    return whole.dump(2) + "\n";
  }

  const TrainingRules& rules_;
  IdOfText ids_;
  std::vector<std::string> texts_;
  std::array<TokenId, 256> bytes_{};
  Words words_;
  std::unordered_map<Pair, std::int64_t, HashOfPair> counts_;
  std::unordered_map<Pair, std::vector<std::uint32_t>, HashOfPair> fresh_;  ///< words where a pair came about
  std::vector<CountedPair> queue_;
  std::vector<Pair> merges_;
};

}  // namespace

void check_rules(const TrainingRules& rules) {
  const std::set<std::string> different(rules.special.begin(), rules.special.end());
  MP_REQUIRE(different.size() == rules.special.size() && !different.contains(""), Exit::usage,
             "a special token is named twice, or is empty; name each once");
  for (int byte = 0; byte < 256; ++byte)
    MP_REQUIRE(!different.contains(letter_of_byte(static_cast<unsigned char>(byte))), Exit::usage,
               "the special token '{}' is the letter of a byte; name another",
               letter_of_byte(static_cast<unsigned char>(byte)));
  const auto least = static_cast<TokenId>(256 + rules.special.size());
  MP_REQUIRE(rules.vocabulary >= least && rules.vocabulary <= Vocabulary::most_tokens, Exit::usage,
             "a vocabulary of {} tokens (expected {} to {}: 256 bytes and the special tokens are among them)",
             rules.vocabulary, least, Vocabulary::most_tokens);
  split_pattern(rules.pattern);
}

std::unique_ptr<PreTokenizer> splits_of(const TrainingRules& rules) {
  if (rules.pattern == "gpt2")
    return make_pre_tokenizer({{"type", "ByteLevel"}, {"add_prefix_space", false}});
  return make_pre_tokenizer(
      {{"type", "Split"}, {"pattern", {{"Regex", split_pattern(rules.pattern)}}}, {"behavior", "Isolated"}});
}

TrainedTokenizer train_byte_pairs(const TrainingRules& rules, const WordCounts::Counts& words) {
  check_rules(rules);
  return Training(rules, words).run();
}

}  // namespace mindpipe
