#pragma once
#include "config/models/blocks.h"

namespace mindpipe::bert {

/// What a BERT that finds masked tokens can be told.
struct Settings : TextSettings {
  Settings() {
    mlp = MlpKind::gelu_exact;
    norm_epsilon = 1e-12;
    vocabulary = 260;  // bytes and the special tokens
  }
  int types = 2;  ///< rows of the table of token types
  bool operator==(const Settings&) const = default;
};

std::vector<Setting> settings(Config& config);
void fill_in(Config& config);
void check(const Config& config, const Complaints& complain);
std::vector<Extent> split_by_shards(const Config& config);
std::vector<Architecture> architectures(const Config& config);

}  // namespace mindpipe::bert
