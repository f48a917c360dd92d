#pragma once
#include <string>
#include <vector>

#include "tokenize/training_rules.h"

namespace mindpipe {

/// What a tokenizer is trained on, and what for.
struct TrainTokenizerRequest {
  std::vector<std::string> inputs;  ///< files and folders, as of an import
  std::string output;               ///< path of the tokenizer.json
  std::string format = "auto";      ///< a format of text, or auto (see files_to_import)
  std::string key = "text";         ///< jsonl: the member that holds the text
  TrainingRules rules{};
  int threads = 0;  ///< number that split texts into words; 0: all processors
};

/// Reads files piece by piece, counts their words and writes a byte-level tokenizer. Gives a line for the
/// user.
std::string train_tokenizer(const TrainTokenizerRequest& request);

}  // namespace mindpipe
