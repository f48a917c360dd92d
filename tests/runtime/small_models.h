#pragma once
#include "config/config.h"
#include "runtime/batches.h"
#include "text_model.h"

namespace mindpipe {

/// What both styles share: odd widths, a batch of three micro-batches, one thread, AdamW.
inline Config small_config() {
  Config config;
  config.seed = 5;
  config.model.gpt.layers = 2;
  config.model.gpt.width = 48;
  config.model.gpt.heads = 4;
  config.model.gpt.context = 24;
  config.model.gpt.vocabulary = 101;
  config.train.batch = 6;
  config.train.micro_batch = 2;
  config.train.steps = 20;
  config.device.threads = 1;
  return config;
}

/// Learned positions, layer norm, GELU, biases, a tied table.
inline Config gpt2_style() { return small_config(); }

/// Rotary positions, RMS norm, SwiGLU, no biases, a head of its own, two queries to each key.
inline Config llama_style() {
  Config config = small_config();
  become_llama(config);
  config.model.gpt.mlp_width = 112;
  return config;
}

}  // namespace mindpipe
