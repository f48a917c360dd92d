#pragma once
#include "config/models/blocks.h"

namespace mindpipe::evolved_transformer {

/// What an Evolved Transformer can be told. Its norms, activations and inner widths are its own.
struct Settings : TextSettings {
  Settings() {
    layers = 3;
    norm_epsilon = 1e-6;
    vocabulary = 260;  // bytes and the special tokens
  }
  int decoder_layers = 0;  ///< cells of the decoder; 0: one more than of the encoder
  bool operator==(const Settings&) const = default;
};

std::vector<Setting> settings(Config& config);
void fill_in(Config& config);
void check(const Config& config, const Complaints& complain);
std::vector<Extent> split_by_shards(const Config& config);

/// Heads of the self-attention that begins a cell of the decoder.
int parallel_heads(const Settings& m);

}  // namespace mindpipe::evolved_transformer
