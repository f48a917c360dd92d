#pragma once
#include "models/model.h"

namespace mindpipe {

/// Names as in Hugging Face's files: GPT-2's for learned positions with biases and no gate, else Llama's.
class GptModel final : public Model {
 public:
  explicit GptModel(const ModelConfig& config)
      : gpt2_(config.positions == Positions::learned && config.norm == ModelNorm::layer &&
              config.mlp != MlpKind::swiglu && config.bias && config.key_value_heads == config.heads) {}
  ExportName export_name(const std::string& unit, const std::string& part) const override;

 private:
  bool gpt2_;
};

}  // namespace mindpipe
