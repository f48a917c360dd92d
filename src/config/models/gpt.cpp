#include "config/models/gpt.h"

#include "config/config.h"
#include "config/rules.h"
#include "config/settings.h"

namespace mindpipe::gpt {

std::vector<Setting> settings(Config& config) {
  Settings& m = config.model.gpt;
  std::vector<Setting> all = text_settings(m);
  all.emplace_back("model.key_value_heads", &m.key_value_heads,
                   "heads of keys and values, divides heads; auto: as many as heads",
                   Range{1, 1 << 16, false, false, "auto"});
  all.emplace_back("model.positions", &m.positions,
                   "how positions enter: a learned table, or rotated queries and keys");
  all.emplace_back("model.rotary_base", &m.rotary_base, "base of the rotary angles", Range{1, 1e12});
  all.emplace_back("model.tied", &m.tied, "embedding and head share their table");
  all.emplace_back("data.sequence", &config.data.sequence,
                   "tokens per sample, at most model.context; auto: model.context",
                   Range{1, 1 << 24, false, false, "auto"});
  return all;
}

void fill_in(Config& config) {
  Settings& m = config.model.gpt;
  mindpipe::fill_in(m);
  if (m.key_value_heads == 0) m.key_value_heads = m.heads;
  if (config.data.sequence == 0) config.data.sequence = m.context;
}

void check(const Config& config, const Complaints& complain) {
  const Settings& m = config.model.gpt;
  mindpipe::check(m, complain);
  complain.require(m.heads % m.key_value_heads == 0, "model.key_value_heads",
                   "is {} and model.heads {} (heads share keys and values in equal groups)",
                   m.key_value_heads, m.heads);
  complain.require(
      m.positions != Positions::rotary || m.width / m.heads % 2 == 0, "model.positions",
      "is rotary and a head is {} wide (rotation works on pairs; make model.width / model.heads even)",
      m.width / m.heads);
  check_length(m, config.data.sequence, "data.sequence", complain);
}

std::vector<Extent> split_by_shards(const Config& config) {
  const Settings& m = config.model.gpt;
  return {{"model.heads", m.heads},
          {"model.key_value_heads", m.key_value_heads},
          {"model.mlp_width", m.mlp_width},
          {"data.sequence", config.data.sequence}};
}

}  // namespace mindpipe::gpt
