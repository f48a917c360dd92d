#pragma once
#include "config/models/pictures.h"

namespace mindpipe {
struct Extent;
}

namespace mindpipe::wide_resnet {

/// What a wide residual network can be told: three groups of blocks, of 16, 32 and 64 times `width` channels.
struct Settings : PictureSettings {
  Settings() {
    picture_height = picture_width = 32;
    classes = 10;
  }
  int depth = 16, width = 4;
  double norm_epsilon = 1e-5, norm_momentum = 0.1;
  int blocks_of_group() const { return (depth - 4) / 6; }
  bool operator==(const Settings&) const = default;
};

std::vector<Setting> settings(Config& config);
void fill_in(Config& config);
void check(const Config& config, const Complaints& complain);
std::vector<Extent> split_by_shards(const Config& config);

}  // namespace mindpipe::wide_resnet
