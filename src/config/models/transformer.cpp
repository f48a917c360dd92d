#include "config/models/transformer.h"

#include "config/config.h"
#include "config/models/architectures.h"
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
  all.emplace_back("model.logits_bias", &m.logits_bias,
                   "a constant for each word is added to its logit (Marian's final_logits_bias); 0 unless "
                   "run.weights says another");
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

std::vector<Architecture> architectures(const Config& config) {
  const auto both = [](const std::string& sides, const std::string& ours, const std::string& absent) {
    return TheirKey{"encoder_" + sides + " decoder_" + sides, ours, absent + " " + absent};
  };
  const auto made = [&](const std::string& name, const std::string& type, std::vector<TheirKey> own) {
    Architecture one{name,
                     type,
                     {{"d_model", "model.width", "1024"},
                      {"encoder_layers", "model.layers", "12"},
                      {"decoder_layers", "model.decoder_layers", "12"},
                      both("attention_heads", "model.heads", "16"),
                      both("ffn_dim", "model.mlp_width", "4096"),
                      {"max_position_embeddings", "model.context", "1024"},
                      {"init_std", "model.initial_deviation", "0.02"},
                      {"dropout", "model.dropout", "0.1"},
                      {"eos_token_id", "data.special.end", "0"},
                      {"", "model.norm", "layer"},
                      {"", "model.norm_epsilon", "1e-05"},
                      {"", "model.bias", "true"}}};
    one.keys.insert(one.keys.end(), own.begin(), own.end());
    // The table of M2M100's positions has a row for padding.
    const Settings& m = config.model.transformer;
    if (name != "MarianMTModel" && m.positions == Places::closed_sinusoids &&
        config.data.special.padding > m.context)
      one.keys.push_back({"", "data.special.padding", std::to_string(m.context)});
    if (name == "MarianMTModel") one.usual = {{"model.logits_bias", "true"}};
    else one.keys.push_back({"", "model.logits_bias", "false"});
    return one;
  };
  return {made("MarianMTModel", "marian",
               {{"vocab_size decoder_vocab_size", "model.vocabulary", "58101 ="},
                {"activation_function", "model.mlp", "gelu", their_activations()},
                {"share_encoder_decoder_embeddings tie_word_embeddings",
                 "model.tables",
                 "true true",
                 {{"true true", "one"}, {"false true", "two"}, {"false false", "three"}}},
                {"scale_embedding", "model.scaled", "false"},
                {"attention_dropout", "model.attention_dropout", "0"},
                {"pad_token_id", "data.special.padding", "58100"},
                {"decoder_start_token_id", "data.special.start", "58100"},
                {"", "model.order", "post_norm"},
                {"", "model.positions", "sinusoids"},
                {"", "model.first_position", "0"}}),
          made("M2M100ForConditionalGeneration", "m2m_100",
               {{"vocab_size", "model.vocabulary", "128112"},
                {"activation_function", "model.mlp", "relu", their_activations()},
                {"tie_word_embeddings", "", "true", {{"true", ""}}},
                {"scale_embedding", "model.scaled", "true"},
                {"attention_dropout", "model.attention_dropout", "0.1"},
                {"pad_token_id", "data.special.padding", "1"},
                {"decoder_start_token_id", "data.special.start", "2"},
                {"", "model.order", "pre_norm"},
                {"", "model.positions", "closed_sinusoids"},
                {"", "model.tables", "one"},
                {"", "model.first_position", std::to_string(config.data.special.padding + 1)}})};
}

}  // namespace mindpipe::transformer
