#pragma once
#include "config/models/blocks.h"

namespace mindpipe::transformer {

/// What an encoder-decoder can be told. Marian's: post_norm, sinusoids. M2M100's: pre_norm,
/// closed_sinusoids, first_position 2.
struct Settings : TextSettings {
  Settings() {
    mlp = MlpKind::relu;
    vocabulary = 260;  // bytes and the special tokens
  }
  int decoder_layers = 0;  ///< 0: as many as layers
  BlockOrder order = BlockOrder::post_norm;
  Places positions = Places::sinusoids;
  int first_position = 0;
  Tables tables = Tables::one;
  bool logits_bias = false;  ///< constants are added to the logits
  bool scaled = true;        ///< embeddings are multiplied by the root of the width
  bool operator==(const Settings&) const = default;
};

std::vector<Setting> settings(Config& config);
void fill_in(Config& config);
void check(const Config& config, const Complaints& complain);
std::vector<Extent> split_by_shards(const Config& config);
std::vector<Architecture> architectures(const Config& config);

}  // namespace mindpipe::transformer
