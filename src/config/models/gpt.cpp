#include "config/models/gpt.h"

#include <algorithm>
#include <cmath>

#include "config/config.h"
#include "config/models/architectures.h"
#include "config/rules.h"
#include "config/settings.h"
#include "core/portable_math.h"

namespace mindpipe::gpt {
namespace {

/// Architectures with rotary heads, RMS norms and gated MLPs, which differ in little.
Architecture llama_like(const Settings& m, const std::string& name, const std::string& type,
                        const std::string& vocabulary, const std::string& key_value_heads,
                        const std::string& head_width, std::vector<TheirKey> own) {
  Architecture made{
      name,
      type,
      {{"vocab_size", "model.vocabulary", vocabulary},
       {"hidden_size", "model.width", "4096"},
       {"num_hidden_layers", "model.layers", "32"},
       {"num_attention_heads", "model.heads", "32"},
       {"num_key_value_heads", "model.key_value_heads", key_value_heads},
       {"head_dim", "model.head_width", head_width},
       {"hidden_act", "model.mlp", "silu", {{"silu", "swiglu"}, {"swish", "swiglu"}}},
       {"rms_norm_eps", "model.norm_epsilon", "1e-06"},
       {"initializer_range", "model.initial_deviation", "0.02"},
       {"attention_dropout", "model.attention_dropout", "0"},
       {"tie_word_embeddings", "model.tied", "false"},
       {"rope_theta|rope_parameters.rope_theta|rope_scaling.rope_theta", "model.rotary_base", "10000"},
       {"rope_scaling.rope_type|rope_parameters.rope_type|rope_scaling.type",
        "model.rotary_scaling",
        "default",
        {{"default", "none"}, {"llama3", "llama3"}},
        true},
       {"partial_rotary_factor|rope_parameters.partial_rotary_factor|rope_scaling.partial_rotary_factor",
        "",
        "1.0",
        {{"1.0", ""}, {"1", ""}, {"null", ""}},
        true},
       {"", "model.positions", "rotary"},
       {"", "model.norm", "rms"}},
      {},
      {{"model.dropout", "0"}}};
  made.keys.insert(made.keys.end(), own.begin(), own.end());
  // All of them are written, or none.
  const bool is_rare = m.rotary_scaling == RotaryScaling::none;
  const auto scaling = [&](const std::string& theirs, const std::string& ours, const std::string& absent) {
    TheirKey key{"rope_scaling." + theirs + "|rope_parameters." + theirs, ours, absent, {}, is_rare};
    key.needed_by = "model.rotary_scaling=llama3";
    made.keys.push_back(key);
  };
  scaling("factor", "model.rotary_factor", "8");
  scaling("low_freq_factor", "model.rotary_low", "1");
  scaling("high_freq_factor", "model.rotary_high", "4");
  scaling("original_max_position_embeddings", "model.rotary_context", "8192");
  made.keys.back().theirs += "|original_max_position_embeddings";
  made.keys.back().then_as = "model.context";
  return made;
}

Architecture gpt2(const Settings& m) {
  return {"GPT2LMHeadModel",
          "gpt2",
          {{"vocab_size", "model.vocabulary", "50257"},
           {"n_positions", "model.context", "1024"},
           {"n_embd", "model.width", "768"},
           {"n_layer", "model.layers", "12"},
           {"n_head", "model.heads", "12"},
           {"n_inner", "model.mlp_width", "null"},
           {"activation_function", "model.mlp", "gelu_new", their_activations()},
           {"layer_norm_epsilon", "model.norm_epsilon", "1e-05"},
           {"initializer_range", "model.initial_deviation", "0.02"},
           {"resid_pdrop embd_pdrop", "model.dropout", "0.1 0.1", {}, false, true},
           {"attn_pdrop", "model.attention_dropout", "0.1"},
           {"tie_word_embeddings", "model.tied", "true"},
           {"scale_attn_weights", "", "true", {{"true", ""}}},
           {"scale_attn_by_inverse_layer_idx", "", "false", {{"false", ""}}},
           {"add_cross_attention", "", "false", {{"false", ""}, {"null", ""}}, true},
           {"", "model.positions", "learned"},
           {"", "model.norm", "layer"},
           {"", "model.bias", "true"},
           {"", "model.qk_norm", "false"},
           {"", "model.key_value_heads", std::to_string(m.heads)},
           {"", "model.head_width", m.width % m.heads == 0 ? std::to_string(m.width / m.heads) : "auto"}}};
}

}  // namespace

std::vector<Setting> settings(Config& config) {
  Settings& m = config.model.gpt;
  std::vector<Setting> all = text_settings(m);
  all.emplace_back("model.key_value_heads", &m.key_value_heads,
                   "heads of keys and values, divides heads; auto: as many as heads",
                   Range{1, 1 << 16, false, false, "auto"});
  all.emplace_back("model.positions", &m.positions,
                   "how positions enter: a learned table, or rotated queries and keys");
  all.emplace_back("model.rotary_base", &m.rotary_base, "base of the rotary angles", Range{1, 1e12});
  all.emplace_back("model.rotary_scaling", &m.rotary_scaling,
                   "llama3: pairs that turn slowly turn model.rotary_factor slower, so that a longer context "
                   "fits");
  all.emplace_back("model.rotary_factor", &m.rotary_factor, "llama3: how much slower", Range{1, 1e6});
  all.emplace_back(
      "model.rotary_low", &m.rotary_low,
      "llama3: pairs with fewer turns than this in model.rotary_context turn slower by the whole "
      "factor",
      Range{0, 1e6, true});
  all.emplace_back("model.rotary_high", &m.rotary_high,
                   "llama3: pairs with more turns than this stay as they are; above model.rotary_low",
                   Range{0, 1e6, true});
  all.emplace_back("model.rotary_context", &m.rotary_context,
                   "llama3: tokens of the context that the model had at first", Range{1, 1 << 24});
  all.emplace_back("model.head_width", &m.head_width, "numbers of a head; auto: model.width / model.heads",
                   Range{1, 1 << 16, false, false, "auto"});
  all.emplace_back("model.qk_norm", &m.qk_norm,
                   "RMSNorm of each head of queries and keys, before they are rotated");
  all.emplace_back("model.qkv_bias", &m.qkv_bias,
                   "biases of queries, keys and values alone, where model.bias is false");
  all.emplace_back("model.tied", &m.tied, "embedding and head share their table");
  all.emplace_back("data.sequence", &config.data.sequence,
                   "tokens per sample, at most model.context; auto: model.context",
                   Range{1, 1 << 24, false, false, "auto"});
  return all;
}

void fill_in(Config& config) {
  Settings& m = config.model.gpt;
  mindpipe::fill_in(m);
  if (m.head_width == 0 && m.width % m.heads == 0) m.head_width = m.width / m.heads;
  if (m.key_value_heads == 0) m.key_value_heads = m.heads;
  if (config.data.sequence == 0) config.data.sequence = m.context;
}

void check(const Config& config, const Complaints& complain) {
  const Settings& m = config.model.gpt;
  if (m.head_width == 0) mindpipe::check(m, complain);
  complain.require(m.heads % m.key_value_heads == 0, "model.key_value_heads",
                   "is {} and model.heads {} (heads share keys and values in equal groups)",
                   m.key_value_heads, m.heads);
  complain.require(
      m.positions != Positions::rotary || m.head_width % 2 == 0, "model.positions",
      "is rotary and a head is {} wide (rotation works on pairs; make model.width / model.heads even)",
      m.head_width);
  complain.require(m.rotary_low < m.rotary_high, "model.rotary_low",
                   "is {} and model.rotary_high {} (fewer turns than more)", m.rotary_low, m.rotary_high);
  complain.require(!m.bias || !m.qkv_bias, "model.qkv_bias",
                   "is true and model.bias too (all products have biases then; leave model.qkv_bias out)");
  check_length(m, config.data.sequence, "data.sequence", complain);
}

std::vector<Extent> split_by_shards(const Config& config) {
  const Settings& m = config.model.gpt;
  return {{"model.heads", m.heads},
          {"model.key_value_heads", m.key_value_heads},
          {"model.mlp_width", m.mlp_width},
          {"data.sequence", config.data.sequence}};
}

/// llama3 of Llama 3.1: what turns less than `rotary_low` times in the first context turns slower by the
/// factor, what turns more than `rotary_high` times stays, and what lies between is blended.
std::vector<double> frequencies(const Settings& m) {
  std::vector<double> all;
  for (int i = 0; i < m.head_width / 2; ++i) {
    const double usual = portable::pow(m.rotary_base, -2.0 * i / m.head_width);
    all.push_back(usual);
    if (m.rotary_scaling == RotaryScaling::none) continue;
    const double turns = m.rotary_context * usual / (2 * M_PI),
                 kept = std::clamp((turns - m.rotary_low) / (m.rotary_high - m.rotary_low), 0.0, 1.0);
    all.back() = (1 - kept) * usual / m.rotary_factor + kept * usual;
  }
  return all;
}

std::vector<Architecture> architectures(const Config& config) {
  const TheirKey no_bias{"", "model.bias", "false"}, no_qkv_bias{"", "model.qkv_bias", "false"},
      no_qk_norm{"", "model.qk_norm", "false"};
  const auto context = [](const std::string& absent) {
    return TheirKey{"max_position_embeddings", "model.context", absent};
  };
  const auto inner = [](const std::string& absent) {
    return TheirKey{"intermediate_size", "model.mlp_width", absent};
  };
  const TheirKey no_window{"use_sliding_window", "", "false", {{"false", ""}, {"null", ""}}, true},
      full{"layer_types", "", "full_attention", {{"full_attention", ""}, {"null", ""}}, true};
  return {gpt2(config.model.gpt),
          llama_like(config.model.gpt, "LlamaForCausalLM", "llama", "32000", "null", "null",
                     {inner("11008"),
                      context("2048"),
                      {"attention_bias mlp_bias",
                       "model.bias",
                       "false false",
                       {{"false false", "false"}, {"true true", "true"}}},
                      no_qkv_bias,
                      no_qk_norm}),
          llama_like(config.model.gpt, "MistralForCausalLM", "mistral", "32000", "8", "null",
                     {inner("14336"),
                      context("131072"),
                      {"sliding_window", "", "4096", {{"null", ""}}},
                      no_bias,
                      no_qkv_bias,
                      no_qk_norm}),
          llama_like(config.model.gpt, "Qwen2ForCausalLM", "qwen2", "151936", "32", "null",
                     {inner("22016"),
                      context("32768"),
                      no_window,
                      full,
                      no_bias,
                      {"", "model.qkv_bias", "true"},
                      no_qk_norm}),
          llama_like(config.model.gpt, "Qwen3ForCausalLM", "qwen3", "151936", "32", "128",
                     {inner("22016"),
                      context("32768"),
                      no_window,
                      full,
                      {"attention_bias", "", "false", {{"false", ""}}},
                      no_bias,
                      no_qkv_bias,
                      {"", "model.qk_norm", "true"}})};
}

}  // namespace mindpipe::gpt
