#pragma once
#include "config/models/space.h"

namespace mindpipe::supernet {

/// What a supernet can be told: its blocks may be all candidates of its space.
struct Settings : SpaceSettings {
  bool operator==(const Settings&) const = default;
};

std::vector<Setting> settings(Config& config);
void fill_in(Config& config);
void check(const Config& config, const Complaints& complain);
std::vector<Extent> split_by_shards(const Config& config);

}  // namespace mindpipe::supernet
