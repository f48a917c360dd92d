#pragma once
#include "config/models/bert.h"
#include "config/models/evolved_transformer.h"
#include "config/models/gpt.h"
#include "config/models/subnet.h"
#include "config/models/supernet.h"
#include "config/models/transformer.h"
#include "config/models/vit.h"
#include "config/models/wide_resnet.h"

namespace mindpipe {

struct ModelRow {
  std::string_view name;
  bool trains_subnets;  ///< one after the other, instead of steps
};

// The table of kinds of models. What a kind can be told stands in config/models/ under its name, in a
// namespace of that name: its struct Settings, and settings, fill_in, check, split_by_shards; src/models/
// makes it of blocks.

// clang-format off
#define MINDPIPE_MODELS(kind) /* trains_subnets */ \
  kind(gpt, "gpt", false) \
  kind(bert, "bert", false) \
  kind(transformer, "transformer", false) \
  kind(vit, "vit", false) \
  kind(evolved_transformer, "evolved_transformer", false) \
  kind(wide_resnet, "wide_resnet", false) \
  kind(subnet, "subnet", false) \
  kind(supernet, "supernet", true)
// Kinds that transformers has architectures of: each has a function `architectures`.
#define MINDPIPE_MODELS_OF_TRANSFORMERS(kind) kind(gpt) kind(bert) kind(transformer) kind(vit)
// clang-format on

MINDPIPE_KINDS(ModelKind, ModelRow, MINDPIPE_MODELS)

/// What a model is told: its kind, and a struct for each kind, of which the chosen one's counts.
struct ModelConfig {
  ModelKind kind{};
#define MINDPIPE_MODEL_MEMBER(model, ...) ::mindpipe::model::Settings model;
  MINDPIPE_MODELS(MINDPIPE_MODEL_MEMBER)
#undef MINDPIPE_MODEL_MEMBER
  bool operator==(const ModelConfig&) const = default;
};

}  // namespace mindpipe
