#pragma once
#include "config/models/blocks.h"

namespace mindpipe::gpt {

/// What a decoder in GPT-2's or Llama's style can be told.
struct Settings : TextSettings {
  int key_value_heads = 0;  ///< 0: as many as heads
  Positions positions = Positions::learned;
  int head_width = 0;     ///< 0: width / heads
  bool qk_norm = false;   ///< RMSNorm of each head of queries and keys
  bool qkv_bias = false;  ///< q, k and v alone have biases
  double rotary_base = 10000;
  RotaryScaling rotary_scaling = RotaryScaling::none;
  double rotary_factor = 8, rotary_low = 1, rotary_high = 4;  ///< llama3: see docs/models.md
  int rotary_context = 8192;  ///< llama3: the context before it was made longer
  bool tied = true;           ///< embedding and head share their table
  bool operator==(const Settings&) const = default;
};

std::vector<Setting> settings(Config& config);
void fill_in(Config& config);
void check(const Config& config, const Complaints& complain);
std::vector<Extent> split_by_shards(const Config& config);
std::vector<Architecture> architectures(const Config& config);

/// The frequency of each pair of a rotary head.
std::vector<double> frequencies(const Settings& m);

}  // namespace mindpipe::gpt
