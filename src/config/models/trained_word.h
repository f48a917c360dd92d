#pragma once
#include "config/models/table.h"

namespace mindpipe {

/// What a model of this kind trains one after the other.
inline const char* trained_word(const ModelConfig& model) {
  return row_of(model.kind).trains_subnets ? "subnet" : "step";
}

}  // namespace mindpipe
