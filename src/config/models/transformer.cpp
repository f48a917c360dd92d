#include "config/models/transformer.h"

#include "config/config.h"
#include "config/rules.h"
#include "config/settings.h"

namespace mindpipe::transformer {

std::vector<Setting> settings(Config& config) {
  constexpr Range automatic{1, 1 << 24, false, false, "auto"};
  Settings& m = config.model.transformer;
  std::vector<Setting> all = text_settings(m);
  all.emplace_back("model.decoder_layers", &m.decoder_layers,
                   "layers of the decoder; auto: as many as model.layers, the encoder's",
                   Range{1, 100000, false, false, "auto"});
  all.emplace_back("model.order", &m.order,
                   "pre_norm: a norm before each branch, and behind the last; post_norm: behind each sum");
  all.emplace_back("model.positions", &m.positions,
                   "how positions enter: a learned table; sinusoids: of 10000^(-2i/width), as Marian; "
                   "closed_sinusoids: of 10000^(-2i/(width - 2)), as M2M100");
  all.emplace_back("model.first_position", &m.first_position,
                   "position of a sequence's first token (M2M100: 2)", Range{0, 1 << 16});
  all.emplace_back("model.tables", &m.tables,
                   "one: for source, target and softmax; two: the source has its own; three");
  all.emplace_back("model.scaled", &m.scaled, "embeddings are multiplied by the square root of model.width");
  all.emplace_back("data.source_sequence", &config.data.source_sequence,
                   "tokens of a sample's source, at most model.context; auto: model.context", automatic);
  all.emplace_back("data.target_sequence", &config.data.target_sequence,
                   "tokens of a sample's target, at most model.context; auto: model.context", automatic);
  add_special_tokens(all, config.data);
  return all;
}

void fill_in(Config& config) {
  Settings& m = config.model.transformer;
  mindpipe::fill_in(m);
  if (m.decoder_layers == 0) m.decoder_layers = m.layers;
  if (config.data.source_sequence == 0) config.data.source_sequence = m.context;
  if (config.data.target_sequence == 0) config.data.target_sequence = m.context;
}

void check(const Config& config, const Complaints& complain) {
  const Settings& m = config.model.transformer;
  mindpipe::check(m, complain);
  check_length(m, config.data.source_sequence, "data.source_sequence", complain);
  check_length(m, config.data.target_sequence, "data.target_sequence", complain);
  complain.require(m.positions == Places::learned || m.width % 2 == 0, "model.width",
                   "is {} and model.positions {} (sines and cosines take half of it each)", m.width,
                   m.positions);
  complain.require(m.positions != Places::closed_sinusoids || m.width > 2, "model.width",
                   "is {} and model.positions closed_sinusoids (they take 4 or more)", m.width);
}

std::vector<Extent> split_by_shards(const Config& config) {
  const Settings& m = config.model.transformer;
  return {{"model.heads", m.heads},
          {"model.mlp_width", m.mlp_width},
          {"data.source_sequence", config.data.source_sequence},
          {"data.target_sequence", config.data.target_sequence}};
}

}  // namespace mindpipe::transformer
