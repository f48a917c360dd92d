#pragma once
#include <string>
#include <vector>

#include "config/kinds.h"

namespace mindpipe {

class Setting;
struct Architecture;
struct Complaints;
struct Config;
struct DataConfig;
struct Extent;

inline constexpr int most_mlp_width = 1 << 22;

/// Settings of models that are made of residual blocks: a norm, attention or an MLP, a sum.
struct BlockSettings {
  int layers = 4, width = 128, heads = 4;
  int mlp_width = 0;  ///< 0: 4 x width (gelu), 8/3 x width rounded up to a multiple of 64 (swiglu)
  ModelNorm norm = ModelNorm::layer;
  double norm_epsilon = 1e-5;
  MlpKind mlp = MlpKind::gelu;
  bool bias = true;
  double dropout = 0, attention_dropout = 0;
  double initial_deviation = 0.02;
  bool operator==(const BlockSettings&) const = default;
};

/// Settings of such models that read texts.
struct TextSettings : BlockSettings {
  int context = 256;  ///< the longest sequence
  int vocabulary = 256;
  bool operator==(const TextSettings&) const = default;
};

std::vector<Setting> block_settings(BlockSettings& m);
std::vector<Setting> text_settings(TextSettings& m);
/// Adds which tokens stand for no text.
void add_special_tokens(std::vector<Setting>& settings, DataConfig& data);
void fill_in(BlockSettings& m);
/// Refuses heads that do not divide the width.
void check(const BlockSettings& m, const Complaints& complain);
/// Refuses a sequence, the setting `key`, that is longer than the context.
void check_length(const TextSettings& m, int sequence, const std::string& key, const Complaints& complain);

}  // namespace mindpipe
