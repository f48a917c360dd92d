#include "config/models/blocks.h"

#include <algorithm>

#include "config/sections/data.h"
#include "config/rules.h"
#include "config/settings.h"

namespace mindpipe {

std::vector<Setting> block_settings(BlockSettings& m) {
  constexpr Range share{0, 1, false, true};
  return {
      {"model.layers", &m.layers, "Transformer layers", Range{1, 100000}},
      {"model.width", &m.width, "numbers per token between layers", Range{1, 1 << 20}},
      {"model.heads", &m.heads, "attention heads; divides width", Range{1, 1 << 16}},
      {"model.mlp_width", &m.mlp_width,
       "inner width of the MLP; auto: 4 width (gelu), 8/3 width rounded up to 64 (swiglu)",
       Range{1, most_mlp_width, false, false, "auto"}},
      {"model.norm", &m.norm, "LayerNorm or RMSNorm"},
      {"model.norm_epsilon", &m.norm_epsilon, "added to the variance", Range{0, 1, true}},
      {"model.mlp", &m.mlp, "the MLP's activation; gelu is the tanh form, gelu_exact that with erf"},
      {"model.bias", &m.bias, "biases in products and norms"},
      {"model.dropout", &m.dropout, "probability that an element of a residual branch is dropped", share},
      {"model.attention_dropout", &m.attention_dropout, "probability that an attention weight is dropped",
       share},
      {"model.initial_deviation", &m.initial_deviation, "standard deviation of the initial weights",
       Range{0, 100, true}},
  };
}

std::vector<Setting> text_settings(TextSettings& m) {
  std::vector<Setting> settings = block_settings(m);
  settings.emplace_back("model.context", &m.context, "the longest sequence", Range{1, 1 << 24});
  settings.emplace_back("model.vocabulary", &m.vocabulary, "distinct tokens; auto: the tokenizer's",
                        Range{1, 1 << 24, false, false, "auto"});
  return settings;
}

void add_special_tokens(std::vector<Setting>& settings, DataConfig& data) {
  constexpr Range id{0, 1 << 24, false, false, "auto", -1};
  SpecialTokens& special = data.special;
  settings.emplace_back("data.special.end", &special.end, "the token behind a text", id);
  settings.emplace_back("data.special.start", &special.start, "the token before a target", id);
  settings.emplace_back("data.special.padding", &special.padding, "the token that fills a sample up", id);
  settings.emplace_back("data.special.mask", &special.mask, "the token in place of a masked one", id);
}

void fill_in(BlockSettings& m) {
  if (m.mlp_width != 0) return;
  m.mlp_width = m.mlp == MlpKind::swiglu
                    ? static_cast<int>((std::int64_t{m.width} * 8 + 3 * 64 - 1) / (3 * 64) * 64)
                    : 4 * m.width;
}

void check(const BlockSettings& m, const Complaints& complain) {
  complain.require(m.width % m.heads == 0, "model.heads",
                   "is {} and model.width {} (heads divide the width; the nearest width is {})", m.heads,
                   m.width, std::max(1, (m.width + m.heads / 2) / m.heads) * m.heads);
}

void check_length(const TextSettings& m, int sequence, const std::string& key, const Complaints& complain) {
  complain.require(sequence <= m.context, key, "is {} and model.context {} (a sample fits the context)",
                   sequence, m.context);
}

}  // namespace mindpipe
