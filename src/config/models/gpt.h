#pragma once
#include "config/models/blocks.h"

namespace mindpipe::gpt {

/// What a decoder in GPT-2's or Llama's style can be told.
struct Settings : TextSettings {
  int key_value_heads = 0;  ///< 0: as many as heads
  Positions positions = Positions::learned;
  double rotary_base = 10000;
  bool tied = true;  ///< embedding and head share their table
  bool operator==(const Settings&) const = default;
};

std::vector<Setting> settings(Config& config);
void fill_in(Config& config);
void check(const Config& config, const Complaints& complain);
std::vector<Extent> split_by_shards(const Config& config);

}  // namespace mindpipe::gpt
