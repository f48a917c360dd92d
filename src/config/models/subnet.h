#pragma once
#include "config/models/space.h"

namespace mindpipe::subnet {

/// What one network of a space can be told: which candidate each of its blocks is.
struct Settings : SpaceSettings {
  std::vector<int> choice;
  bool operator==(const Settings&) const = default;
};

std::vector<Setting> settings(Config& config);
void fill_in(Config& config);
void check(const Config& config, const Complaints& complain);
std::vector<Extent> split_by_shards(const Config& config);

}  // namespace mindpipe::subnet
