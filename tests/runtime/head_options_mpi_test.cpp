// ranks: 2, thorough ranks: 4
#include "runtime/parity_compare.h"

// What Qwen and Llama 3 have beside Llama: heads of a width of their own, biases of q, k and v alone, norms
// of queries and keys whose gains all shards share, pairs that turn slower.
namespace mindpipe {
namespace {

Config with_head_options(const Choice& choice, int ranks) {
  Config config = config_of(choice, ranks);
  gpt::Settings& m = config.model.gpt;
  m.head_width = 6;
  m.qkv_bias = m.qk_norm = true;
  m.rotary_scaling = RotaryScaling::llama3;
  m.rotary_context = 8;
  return resolve(config);
}

/// Every fourth covering choice, as a model with all of these options.
std::vector<Config> cases_of(int ranks) {
  std::vector<Config> configs;
  const std::vector<Choice> choices = covering_choices(ranks, 1);
  for (std::size_t i = 0; i < choices.size(); i += 4) {
    Choice choice = choices[i];
    choice[style_at] = static_cast<int>(Style::llama);
    configs.push_back(with_head_options(choice, ranks));
  }
  return configs;
}

TEST(HeadOptions, HaveTheBitsOfOneRankOnEveryLayout) {
  compare(cases_of(all_ranks().size), 0, 2, outcome_of_steps, outcome_of_steps);
}

}  // namespace
}  // namespace mindpipe
