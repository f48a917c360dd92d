#include "config/models/bert.h"

#include "config/config.h"
#include "config/rules.h"
#include "config/settings.h"

namespace mindpipe::bert {

std::vector<Setting> settings(Config& config) {
  constexpr Range automatic{1, 1 << 24, false, false, "auto"};
  Settings& m = config.model.bert;
  std::vector<Setting> all = text_settings(m);
  all.emplace_back("model.types", &m.types,
                   "types of tokens with a row each; all tokens of a sample are of the first",
                   Range{1, 1 << 16});
  all.emplace_back("data.sequence", &config.data.sequence,
                   "tokens per sample, at most model.context; auto: model.context", automatic);
  all.emplace_back("data.masked", &config.data.masked,
                   "most masked tokens of a sample, of which 15 % are drawn; auto: 0.2 data.sequence",
                   automatic);
  add_special_tokens(all, config.data);
  return all;
}

void fill_in(Config& config) {
  Settings& m = config.model.bert;
  mindpipe::fill_in(m);
  if (config.data.sequence == 0) config.data.sequence = m.context;
  if (config.data.masked == 0) config.data.masked = (config.data.sequence + 4) / 5;
}

void check(const Config& config, const Complaints& complain) {
  const Settings& m = config.model.bert;
  mindpipe::check(m, complain);
  check_length(m, config.data.sequence, "data.sequence", complain);
  complain.require(config.data.masked <= config.data.sequence, "data.masked",
                   "is {} and data.sequence {} (they are tokens of the sample)", config.data.masked,
                   config.data.sequence);
  complain.require(config.data.special.mask < m.vocabulary, "data.special.mask",
                   "is {} and model.vocabulary {} (the mask is a token of the vocabulary)",
                   config.data.special.mask, m.vocabulary);
  complain.require(config.data.special.padding < m.vocabulary, "data.special.padding",
                   "is {} and model.vocabulary {} (padding is a token of the vocabulary)",
                   config.data.special.padding, m.vocabulary);
}

std::vector<Extent> split_by_shards(const Config& config) {
  const Settings& m = config.model.bert;
  return {
      {"model.heads", m.heads}, {"model.mlp_width", m.mlp_width}, {"data.sequence", config.data.sequence}};
}

}  // namespace mindpipe::bert
