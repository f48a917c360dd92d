#pragma once
#include "config/models/blocks.h"
#include "config/models/pictures.h"

namespace mindpipe::vit {

/// What a Vision Transformer that classifies pictures can be told.
struct Settings : BlockSettings, PictureSettings {
  Settings() {
    mlp = MlpKind::gelu_exact;
    norm_epsilon = 1e-12;
  }
  int patch = 16;
  bool operator==(const Settings&) const = default;
};

std::vector<Setting> settings(Config& config);
void fill_in(Config& config);
void check(const Config& config, const Complaints& complain);
std::vector<Extent> split_by_shards(const Config& config);
std::vector<Architecture> architectures(const Config& config);

}  // namespace mindpipe::vit
