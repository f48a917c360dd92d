#include "config/models/evolved_transformer.h"

#include <algorithm>

#include "config/config.h"
#include "config/rules.h"
#include "config/settings.h"

namespace mindpipe::evolved_transformer {

int parallel_heads(const Settings& m) { return std::max(std::min(2 * m.heads, 16), m.heads); }

std::vector<Setting> settings(Config& config) {
  constexpr Range automatic{1, 1 << 24, false, false, "auto"}, share{0, 1, false, true};
  Settings& m = config.model.evolved_transformer;
  std::vector<Setting> all{
      {"model.layers", &m.layers, "cells of the encoder", Range{1, 100000}},
      {"model.decoder_layers", &m.decoder_layers,
       "cells of the decoder; auto: one more than model.layers, the encoder's",
       Range{1, 100000, false, false, "auto"}},
      {"model.width", &m.width, "numbers per token between layers; even", Range{4, 1 << 20}},
      {"model.heads", &m.heads,
       "attention heads; divides width, as does the number at the start of a decoder's cell: twice as many, "
       "but 16 at most",
       Range{1, 1 << 16}},
      {"model.dropout", &m.dropout,
       "probability that an element of embeddings, a branch or what is inside it is dropped", share},
      {"model.attention_dropout", &m.attention_dropout, "probability that an attention weight is dropped",
       share},
      {"model.norm_epsilon", &m.norm_epsilon, "added to the variance", Range{0, 1, true}},
      {"model.context", &m.context, "the longest sequence", Range{1, 1 << 24}},
      {"model.vocabulary", &m.vocabulary, "distinct tokens; auto: the tokenizer's",
       Range{1, 1 << 24, false, false, "auto"}},
      {"data.source_sequence", &config.data.source_sequence,
       "tokens of a sample's source, at most model.context; auto: model.context", automatic},
      {"data.target_sequence", &config.data.target_sequence,
       "tokens of a sample's target, at most model.context; auto: model.context", automatic},
  };
  add_special_tokens(all, config.data);
  return all;
}

void fill_in(Config& config) {
  Settings& m = config.model.evolved_transformer;
  m.mlp_width = 4 * m.width;
  if (m.decoder_layers == 0) m.decoder_layers = m.layers + 1;
  if (config.data.source_sequence == 0) config.data.source_sequence = m.context;
  if (config.data.target_sequence == 0) config.data.target_sequence = m.context;
}

void check(const Config& config, const Complaints& complain) {
  const Settings& m = config.model.evolved_transformer;
  mindpipe::check(m, complain);
  const int parallel = parallel_heads(m);
  complain.require(m.width % parallel == 0, "model.heads",
                   "is {} and model.width {} (a cell of the decoder begins with {} heads, which divide the "
                   "width; the nearest width is {})",
                   m.heads, m.width, parallel, std::max(1, (m.width + parallel / 2) / parallel) * parallel);
  complain.require(m.width % 2 == 0, "model.width",
                   "is {} (sines and cosines, and the convolutions of a cell, take half of it)", m.width);
  check_length(m, config.data.source_sequence, "data.source_sequence", complain);
  check_length(m, config.data.target_sequence, "data.target_sequence", complain);
}

std::vector<Extent> split_by_shards(const Config& config) {
  const Settings& m = config.model.evolved_transformer;
  return {{"model.heads", m.heads},
          {"the heads that begin a cell of the decoder (twice model.heads, at most 16)", parallel_heads(m)},
          {"data.source_sequence", config.data.source_sequence},
          {"data.target_sequence", config.data.target_sequence}};
}

}  // namespace mindpipe::evolved_transformer
