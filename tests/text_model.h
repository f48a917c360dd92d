#pragma once
#include <concepts>

#include "config/config.h"
#include "core/check.h"

namespace mindpipe {

/// A model's settings as some of them, or nothing.
template <class Some, class All>
Some* settings_as(All& all) {
  if constexpr (std::derived_from<All, Some>) return &all;
  else return nullptr;
}

/// The settings that a configuration's model has as models of residual blocks, or models that read texts.
template <class Some>
Some& settings_of_model(Config& config) {
  Some* found = nullptr;
  switch (config.model.kind) {
#define MINDPIPE_MODEL_AS(kind, ...)              \
  case ModelKind::kind:                           \
    found = settings_as<Some>(config.model.kind); \
    break;
    MINDPIPE_MODELS(MINDPIPE_MODEL_AS)
#undef MINDPIPE_MODEL_AS
  }
  MP_CHECK(found != nullptr, "a {} has no such settings", config.model.kind);
  return *found;
}
inline TextSettings& text_model(Config& config) { return settings_of_model<TextSettings>(config); }
inline BlockSettings& block_model(Config& config) { return settings_of_model<BlockSettings>(config); }
inline const TextSettings& text_model(const Config& config) {
  return text_model(const_cast<Config&>(config));
}
inline const BlockSettings& block_model(const Config& config) {
  return block_model(const_cast<Config&>(config));
}

/// Whether a sample is a source and its target.
inline bool reads_pairs(const Config& config) {
  if (config.model.kind == ModelKind::subnet) return config.model.subnet.space.has_encoder();
  if (config.model.kind == ModelKind::supernet) return config.model.supernet.space.has_encoder();
  return config.model.kind == ModelKind::transformer || config.model.kind == ModelKind::evolved_transformer;
}
/// Whether each word follows from those before it, and from a source if there is one.
inline bool is_causal(const Config& config) {
  return config.model.kind == ModelKind::gpt || config.model.kind == ModelKind::subnet ||
         config.model.kind == ModelKind::supernet || reads_pairs(config);
}
/// Rows of a sample that have a target each, or rows of a text.
inline int rows_of(const Config& config) {
  return reads_pairs(config) ? config.data.target_sequence : config.data.sequence;
}

/// Gives a gpt rotary positions, RMS norm, SwiGLU, no biases, a head of its own, two heads of keys and
/// values.
inline void become_llama(Config& config) {
  gpt::Settings& model = config.model.gpt;
  model.positions = Positions::rotary;
  model.norm = ModelNorm::rms;
  model.mlp = MlpKind::swiglu;
  model.bias = false;
  model.tied = false;
  model.key_value_heads = 2;
}

/// What the program makes and the configuration's model reads: sums in words, pairs of them where it has a
/// source, pictures.
inline DataSource sums_for(const Config& config) {
  switch (config.model.kind) {
    case ModelKind::transformer:
    case ModelKind::evolved_transformer:
      return {"reversed:synthetic:arithmetic", 1};
    case ModelKind::vit:
    case ModelKind::wide_resnet:
      return {"synthetic:shapes", 1};
    case ModelKind::subnet:
    case ModelKind::supernet:
      return {reads_pairs(config) ? "reversed:synthetic:arithmetic" : "synthetic:arithmetic", 1};
    default:
      return {"synthetic:arithmetic", 1};
  }
}

/// Gives an encoder-decoder a gpt's ways: pre-norm, learned positions, one table as it is.
inline void become_plain(transformer::Settings& model) {
  model.order = BlockOrder::pre_norm;
  model.positions = Places::learned;
  model.scaled = false;
}

/// Turns a configuration of a gpt into one of an encoder-decoder of its sizes, which learns to turn texts
/// around.
inline void become_transformer(Config& config) {
  static_cast<TextSettings&>(config.model.transformer) = config.model.gpt;
  become_plain(config.model.transformer);
  config.model.kind = ModelKind::transformer;
  config.data.target_sequence = config.data.sequence;
  if (config.data.source_sequence == 0) config.data.source_sequence = config.data.sequence;
  for (auto* sources : {&config.data.train, &config.data.validation})
    for (DataSource& source : *sources) source.path = "reversed:" + source.path;
}

}  // namespace mindpipe
