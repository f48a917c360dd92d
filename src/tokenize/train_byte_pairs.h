#pragma once
#include <memory>
#include <string>

#include "tokenize/training_rules.h"
#include "tokenize/word_counts.h"

namespace mindpipe {

/// Refuses rules that no training can follow.
void check_rules(const TrainingRules& rules);
/// What splits texts for a training by these rules.
std::unique_ptr<PreTokenizer> splits_of(const TrainingRules& rules);

/// A tokenizer that was trained, as tokenizer.json.
struct TrainedTokenizer {
  std::string json;
  TokenId vocabulary = 0;
  std::size_t merges = 0;
};
/// Makes tokens of the pairs that stand most often in words, one after the other: of equal counts the pair
/// with the smaller ids is first. Tokens and merges are those that the library tokenizers trains.
TrainedTokenizer train_byte_pairs(const TrainingRules& rules, const WordCounts::Counts& words);

}  // namespace mindpipe
