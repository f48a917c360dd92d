#pragma once
#include <memory>
#include <string>

#include "tokenize/tokenizer.h"

namespace mindpipe {

struct Config;
struct DataConfig;
struct RunConfig;

/// Lets the vocabulary and the special tokens follow the tokenizer, where one is named: what a file says of
/// them afterwards stands.
void follow_tokenizer(Config& config);

/// Puts the tokenizer's numbers in place of auto, and its hash into data.tokenizer_hash. A tokenizer that is
/// no longer where it was is taken from the copy in the run directory.
void fill_in_tokens(Config& config);

/// What is left of auto where no tokenizer is named: the key of a setting, or nothing.
std::string auto_without_tokenizer(Config config);

/// The run's tokenizer; bytes where none is named. One with another hash than data.tokenizer_hash is refused.
std::unique_ptr<Tokenizer> open_tokenizer(const DataConfig& data);

/// The folder in which a run keeps a copy of its tokenizer.
std::string tokenizer_copy_of(const RunConfig& run);
/// Copies the run's tokenizer into the run directory, if one is named and none is there; beside it what opens
/// it in transformers.
void keep_tokenizer(const Config& config);
/// Name, in the folder of the copy, of what transformers calls tokenizer_config.json: there it would be part
/// of the tokenizer.
inline constexpr const char* kept_tokenizer_settings = "transformers.json";
/// Refuses to read what a run has learned by another tokenizer than the one that the run keeps.
void require_kept_tokenizer(const Config& config);

}  // namespace mindpipe
