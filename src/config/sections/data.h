#pragma once
#include <string>
#include <vector>

namespace mindpipe {

struct DataSource {
  std::string path;  ///< a .bin/.idx pair without its ending, "synthetic:arithmetic", "reversed:PATH"
  double weight = 1;
  bool operator==(const DataSource&) const = default;
};

/// Tokens that stand for no text; below 0: those of the tokenizer. The defaults follow those of bytes.
struct SpecialTokens {
  int end = 256, start = 257, padding = 258, mask = 259;
  bool operator==(const SpecialTokens&) const = default;
};

struct DataConfig {
  std::vector<DataSource> train, validation;
  int sequence = 0;                              ///< tokens of a sample; 0: model.context
  int source_sequence = 0, target_sequence = 0;  ///< tokens of a pair; 0: model.context
  int masked = 0;  ///< tokens of a sample that are to be found, at most; 0: 15 %
  SpecialTokens special{};
  std::string tokenizer;       ///< a file or folder; empty: a token is a byte
  std::string tokenizer_hash;  ///< SHA-256 of its files
  std::string chat_template;   ///< how generate writes a conversation; empty: a prompt stands as it is
  bool flip = false;           ///< pictures to train on: every second one mirrored
  int crop = 0;                ///< pixels that pictures to train on are moved by, at most
  bool operator==(const DataConfig&) const = default;
};

}  // namespace mindpipe
