#include "models/gpt_names.h"

#include <map>

namespace mindpipe {
namespace {

using Table = std::map<std::string, std::string>;

// GPT-2 stacks q, k and v into c_attn: the pieces of one file tensor are told apart by "#0", "#1", "#2".
const Table gpt2_attention{{"norm", "ln_1"},
                           {"attention.q", "attn.c_attn#0"},
                           {"attention.k", "attn.c_attn#1"},
                           {"attention.v", "attn.c_attn#2"},
                           {"attention.output", "attn.c_proj"}};
const Table gpt2_mlp{{"norm", "ln_2"}, {"mlp.up", "mlp.c_fc"}, {"mlp.output", "mlp.c_proj"}};
const Table llama_attention{{"norm", "input_layernorm"},
                            {"attention.q", "self_attn.q_proj"},
                            {"attention.k", "self_attn.k_proj"},
                            {"attention.v", "self_attn.v_proj"},
                            {"attention.output", "self_attn.o_proj"}};
const Table llama_mlp{{"norm", "post_attention_layernorm"},
                      {"mlp.gate", "mlp.gate_proj"},
                      {"mlp.up", "mlp.up_proj"},
                      {"mlp.output", "mlp.down_proj"}};

}  // namespace

Model::ExportName GptModel::export_name(const std::string& unit, const std::string& part) const {
  const std::size_t dot = part.rfind('.');
  const std::string stem = part.substr(0, dot), ending = part.substr(dot);  // ".weight" or ".bias"
  if (stem == "embedding") return {gpt2_ ? "transformer.wte.weight" : "model.embed_tokens.weight", false};
  if (stem == "positions") return {gpt2_ ? "transformer.wpe.weight" : "model.embed_positions.weight", false};
  if (stem == "classifier") return {"lm_head.weight", false};
  if (stem == "final_norm") return {(gpt2_ ? "transformer.ln_f" : "model.norm") + ending, false};
  // unit is "layers.N.attention" or "layers.N.mlp"
  const std::size_t second = unit.find('.', 7);
  const std::string number = unit.substr(7, second - 7);
  const bool attention = unit.substr(second + 1) == "attention";
  const Table& table =
      gpt2_ ? (attention ? gpt2_attention : gpt2_mlp) : (attention ? llama_attention : llama_mlp);
  const std::string& name = table.at(stem);
  const std::size_t hash = name.find('#');
  const std::string base = name.substr(0, hash), piece = hash == std::string::npos ? "" : name.substr(hash);
  return {(gpt2_ ? "transformer.h." : "model.layers.") + number + "." + base + ending + piece,
          gpt2_ && ending == ".weight" && stem != "norm"};
}

}  // namespace mindpipe
