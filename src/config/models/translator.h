#pragma once
#include "config/models/blocks.h"

namespace mindpipe::translator {

/// What an encoder-decoder with learned positions and one table can be told.
struct Settings : TextSettings {
  bool operator==(const Settings&) const = default;
};

std::vector<Setting> settings(Config& config);
void fill_in(Config& config);
void check(const Config& config, const Complaints& complain);
std::vector<Extent> cut_by_shards(const Config& config);

}  // namespace mindpipe::translator
