#include "config/models/translator.h"

#include "config/config.h"
#include "config/rules.h"
#include "config/settings.h"

namespace mindpipe::translator {

std::vector<Setting> settings(Config& config) {
  constexpr Range length{1, 1 << 24, false, false, true};
  std::vector<Setting> all = text_settings(config.model.translator);
  all.emplace_back("data.sequence", &config.data.sequence,
                   "tokens of a sample's target, at most model.context; auto: model.context", length);
  all.emplace_back("data.source_sequence", &config.data.source_sequence,
                   "tokens of a sample's source, at most model.context; auto: data.sequence", length);
  return all;
}

void fill_in(Config& config) {
  Settings& m = config.model.translator;
  mindpipe::fill_in(m);
  if (config.data.sequence == 0) config.data.sequence = m.context;
  if (config.data.source_sequence == 0) config.data.source_sequence = config.data.sequence;
}

void check(const Config& config, const Complaints& complain) {
  const Settings& m = config.model.translator;
  mindpipe::check(m, complain);
  check_length(m, config.data.sequence, "data.sequence", complain);
  check_length(m, config.data.source_sequence, "data.source_sequence", complain);
}

std::vector<Extent> cut_by_shards(const Config& config) {
  const Settings& m = config.model.translator;
  return {{"model.heads", m.heads},
          {"model.mlp_width", m.mlp_width},
          {"data.sequence", config.data.sequence},
          {"data.source_sequence", config.data.source_sequence}};
}

}  // namespace mindpipe::translator
