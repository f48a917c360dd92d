#pragma once
#include <concepts>

#include "config/config.h"

namespace mindpipe {

/// The settings of a configuration's model, which reads texts, whatever its kind.
inline TextSettings& text_model(Config& config) {
  switch (config.model.kind) {
#define MINDPIPE_TEXT_MODEL(kind, ...)                                                                    \
  case ModelKind::kind:                                                                                   \
    if constexpr (std::derived_from<decltype(ModelConfig::kind), TextSettings>) return config.model.kind; \
    break;
    MINDPIPE_MODELS(MINDPIPE_TEXT_MODEL)
#undef MINDPIPE_TEXT_MODEL
  }
  fail(Exit::internal, "a {} reads no texts", config.model.kind);
}
inline const TextSettings& text_model(const Config& config) {
  return text_model(const_cast<Config&>(config));
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

/// Sums in words as the configuration's model reads them: pairs where it has a source.
inline DataSource sums_for(const Config& config) {
  return {config.model.kind == ModelKind::gpt ? "synthetic:arithmetic" : "reversed:synthetic:arithmetic", 1};
}

/// Turns a configuration of a gpt into one of a translator of its sizes, which learns to turn texts around.
inline void become_translator(Config& config) {
  static_cast<TextSettings&>(config.model.translator) = config.model.gpt;
  config.model.kind = ModelKind::translator;
  for (auto* sources : {&config.data.train, &config.data.validation})
    for (DataSource& source : *sources) source.path = "reversed:" + source.path;
}

}  // namespace mindpipe
