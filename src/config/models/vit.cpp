#include "config/models/vit.h"

#include "config/config.h"
#include "config/models/architectures.h"
#include "config/rules.h"
#include "config/settings.h"

namespace mindpipe::vit {

std::vector<Setting> settings(Config& config) {
  Settings& m = config.model.vit;
  std::vector<Setting> all = block_settings(m);
  all.emplace_back("model.patch", &m.patch, "side of a patch; divides height and width of a picture",
                   Range{1, 1 << 14});
  add_picture_settings(all, m, config);
  return all;
}

void fill_in(Config& config) { mindpipe::fill_in(config.model.vit); }

void check(const Config& config, const Complaints& complain) {
  const Settings& m = config.model.vit;
  mindpipe::check(m, complain);
  const auto cut = [&](const char* key, int extent) {
    complain.require(extent % m.patch == 0, key, "is {} and model.patch {} (patches tile a picture)", extent,
                     m.patch);
  };
  cut("model.picture_height", m.picture_height);
  cut("model.picture_width", m.picture_width);
  check_pictures(m, complain);
}

std::vector<Extent> split_by_shards(const Config& config) {
  const Settings& m = config.model.vit;
  return {{"model.heads", m.heads}, {"model.mlp_width", m.mlp_width}};
}

std::vector<Architecture> architectures(const Config&) {
  return {{"ViTForImageClassification",
           "vit",
           {{"hidden_size", "model.width", "768"},
            {"num_hidden_layers", "model.layers", "12"},
            {"num_attention_heads", "model.heads", "12"},
            {"intermediate_size", "model.mlp_width", "3072"},
            {"hidden_act", "model.mlp", "gelu", their_activations()},
            {"image_size.0", "model.picture_height", "224"},
            {"image_size.1", "model.picture_width", "224"},
            {"patch_size", "model.patch", "16"},
            {"num_channels", "model.channels", "3"},
            {"id2label#|num_labels", "model.classes", "2"},
            {"layer_norm_eps", "model.norm_epsilon", "1e-12"},
            {"initializer_range", "model.initial_deviation", "0.02"},
            {"hidden_dropout_prob", "model.dropout", "0"},
            {"attention_probs_dropout_prob", "model.attention_dropout", "0"},
            {"qkv_bias", "", "true", {{"true", ""}}},
            {"", "model.norm", "layer"},
            {"", "model.bias", "true"}}}};
}

}  // namespace mindpipe::vit
