#pragma once
#include "config/models/blocks.h"

namespace mindpipe::vit {

/// What a Vision Transformer that classifies pictures can be told.
struct Settings : BlockSettings {
  Settings() {
    mlp = MlpKind::gelu_exact;
    norm_epsilon = 1e-12;
  }
  int channels = 3, picture_height = 224, picture_width = 224, patch = 16, classes = 1000;
  std::vector<double> mean{0.5}, deviation{0.5};  ///< of what a pixel is, from 0 to 1, by channel or one
  bool operator==(const Settings&) const = default;
};

std::vector<Setting> settings(Config& config);
void fill_in(Config& config);
void check(const Config& config, const Complaints& complain);
std::vector<Extent> cut_by_shards(const Config& config);

}  // namespace mindpipe::vit
