#include "models/gpt_names.h"

#include "config/kinds.h"
#include "models/names.h"

namespace mindpipe::gpt {
namespace {

// GPT-2 stacks q, k and v into c_attn: the pieces of one file tensor are told apart by "#0", "#1", "#2".
const NameTable gpt2{{"embedding.embedding", "transformer.wte"},
                     {"positions.positions", "transformer.wpe"},
                     {"layers.N.attention.norm", "transformer.h.N.ln_1"},
                     {"layers.N.attention.attention.q", "transformer.h.N.attn.c_attn#0"},
                     {"layers.N.attention.attention.k", "transformer.h.N.attn.c_attn#1"},
                     {"layers.N.attention.attention.v", "transformer.h.N.attn.c_attn#2"},
                     {"layers.N.attention.attention.output", "transformer.h.N.attn.c_proj"},
                     {"layers.N.mlp.norm", "transformer.h.N.ln_2"},
                     {"layers.N.mlp.mlp.up", "transformer.h.N.mlp.c_fc"},
                     {"layers.N.mlp.mlp.output", "transformer.h.N.mlp.c_proj"},
                     {"head.final_norm", "transformer.ln_f"},
                     {"head.classifier", "lm_head"}};
const NameTable llama{{"embedding.embedding", "model.embed_tokens"},
                      {"positions.positions", "model.embed_positions"},
                      {"layers.N.attention.norm", "model.layers.N.input_layernorm"},
                      {"layers.N.attention.attention.q", "model.layers.N.self_attn.q_proj"},
                      {"layers.N.attention.attention.k", "model.layers.N.self_attn.k_proj"},
                      {"layers.N.attention.attention.v", "model.layers.N.self_attn.v_proj"},
                      {"layers.N.attention.attention.q_norm", "model.layers.N.self_attn.q_norm"},
                      {"layers.N.attention.attention.k_norm", "model.layers.N.self_attn.k_norm"},
                      {"layers.N.attention.attention.output", "model.layers.N.self_attn.o_proj"},
                      {"layers.N.mlp.norm", "model.layers.N.post_attention_layernorm"},
                      {"layers.N.mlp.mlp.gate", "model.layers.N.mlp.gate_proj"},
                      {"layers.N.mlp.mlp.up", "model.layers.N.mlp.up_proj"},
                      {"layers.N.mlp.mlp.output", "model.layers.N.mlp.down_proj"},
                      {"head.final_norm", "model.norm"},
                      {"head.classifier", "lm_head"}};

/// Whether GPT-2 stores a part as [in, out].
bool is_transposed(const std::string& part) {
  return part.ends_with(".weight") && (part.starts_with("attention.") || part.starts_with("mlp."));
}

}  // namespace

bool is_like_gpt2(const Settings& config) {
  return config.positions == Positions::learned && config.norm == ModelNorm::layer &&
         config.mlp != MlpKind::swiglu && config.bias && config.key_value_heads == config.heads &&
         !config.qk_norm;
}

Model::Names names_for(const Settings& config) {
  const bool like_gpt2 = is_like_gpt2(config);
  return [like_gpt2](const std::string& unit, const std::string& part) {
    return Model::ExportName{name_from(like_gpt2 ? gpt2 : llama, unit, part),
                             like_gpt2 && is_transposed(part)};
  };
}

Model::FileNames file_names_for(const Settings& config) {
  const bool like_gpt2 = is_like_gpt2(config);
  Model::FileNames names{
      like_gpt2 ? "transformer." : "model.",
      {},
      like_gpt2 ? std::vector<std::string>{"transformer.h.*.attn.bias", "transformer.h.*.attn.masked_bias"}
                : std::vector<std::string>{"model.layers.*.rotary_emb.inv_freq", "model.rotary_emb.inv_freq"},
      {"lm_head.*"}};
  if (config.tied)
    names.second.emplace_back("lm_head.weight",
                              like_gpt2 ? "transformer.wte.weight" : "model.embed_tokens.weight");
  return names;
}

}  // namespace mindpipe::gpt
