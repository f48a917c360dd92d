#include "config/models/bert.h"

#include <algorithm>

#include "config/config.h"
#include "config/models/architectures.h"
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

std::vector<Architecture> architectures(const Config& config) {
  const auto usual = [&](int token) {
    return std::to_string(std::min(token, config.model.bert.vocabulary - 1));
  };
  return {{"BertForMaskedLM",
           "bert",
           {{"vocab_size", "model.vocabulary", "30522"},
            {"hidden_size", "model.width", "768"},
            {"num_hidden_layers", "model.layers", "12"},
            {"num_attention_heads", "model.heads", "12"},
            {"intermediate_size", "model.mlp_width", "3072"},
            {"hidden_act", "model.mlp", "gelu", their_activations()},
            {"max_position_embeddings", "model.context", "512"},
            {"type_vocab_size", "model.types", "2"},
            {"layer_norm_eps", "model.norm_epsilon", "1e-12"},
            {"initializer_range", "model.initial_deviation", "0.02"},
            {"hidden_dropout_prob", "model.dropout", "0.1"},
            {"attention_probs_dropout_prob", "model.attention_dropout", "0.1"},
            {"pad_token_id", "data.special.padding", "0", {}, false, false, "0"},
            {"tie_word_embeddings", "", "true", {{"true", ""}}},
            {"position_embedding_type", "", "absolute", {{"absolute", ""}, {"null", ""}}, true},
            {"is_decoder", "", "false", {{"false", ""}, {"null", ""}}, true},
            {"add_cross_attention", "", "false", {{"false", ""}, {"null", ""}}, true},
            {"", "model.norm", "layer"},
            {"", "model.bias", "true"}},
           {"BertForPreTraining"},
           // The numbers of its usual vocabularies, which only the tokenizer's files say.
           {{"data.special.end", usual(102)},
            {"data.special.start", usual(101)},
            {"data.special.mask", usual(103)}}}};
}

}  // namespace mindpipe::bert
