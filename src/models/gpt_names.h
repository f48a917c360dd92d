#pragma once
#include "config/models/gpt.h"
#include "models/model.h"

namespace mindpipe::gpt {

/// Names as in Hugging Face's files: GPT-2's for learned positions with biases and no gate, else Llama's.
Model::Names names_for(const Settings& config);
/// What files of either style have beside these tensors.
Model::FileNames file_names_for(const Settings& config);

}  // namespace mindpipe::gpt
