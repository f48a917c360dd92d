// ranks: 6, thorough ranks: 2 3 4 8
#include "runtime/parity_compare.h"

// Degrees that divide the logical shards but cut no whole subtrees of their sums: a rank hands on several.
namespace mindpipe {
namespace {

struct Shares {
  GridConfig grid;
  int data, tensor;  ///< logical shards
};

std::vector<Shares> shares_of(int ranks) {
  switch (ranks) {
    case 2:
      return {{{1, 1, 2, 1}, 6, 1}, {{1, 1, 2, 1}, 12, 1}, {{1, 1, 2, 1}, 10, 2}, {{1, 1, 1, 2}, 1, 6}};
    case 3:
      return {{{1, 1, 3, 1}, 6, 2},
              {{1, 1, 3, 1}, 12, 1},
              {{1, 1, 3, 1}, 9, 1},
              {{1, 1, 1, 3}, 2, 6},
              {{1, 1, 1, 3}, 1, 12}};
    case 4:
      return {{{1, 1, 4, 1}, 12, 1}, {{1, 2, 2, 1}, 6, 1}, {{1, 1, 2, 2}, 6, 6}, {{1, 2, 1, 2}, 3, 6}};
    case 6:
      return {{{1, 1, 6, 1}, 12, 1}, {{1, 2, 3, 1}, 9, 1}, {{1, 1, 3, 2}, 9, 6}, {{1, 2, 1, 3}, 1, 12}};
    default:
      return {{{1, 2, 2, 2}, 6, 6}, {{1, 2, 4, 1}, 12, 1}};
  }
}

/// What the layouts take turns in besides their grids.
struct Manner {
  Style style;
  ScheduleKind schedule;
  Precision precision;
  int zero, of_shard;
  bool sequence_parallel, recomputed;
};
constexpr auto one_each = ScheduleKind::one_forward_one_backward;
const std::array manners{
    Manner{Style::bert, one_each, Precision::f32, 0, 1, false, false},
    Manner{Style::llama, one_each, Precision::bf16, 1, 2, true, false},
    Manner{Style::gpt2, ScheduleKind::interleaved, Precision::bf16, 2, 1, true, false},
    Manner{Style::gpt2, ScheduleKind::zero_bubble, Precision::f32, 1, 2, false, false},
    Manner{Style::transformer, ScheduleKind::interleaved, Precision::f32, 2, 2, false, true},
    Manner{Style::llama, ScheduleKind::zero_bubble, Precision::bf16, 0, 1, true, false},
    Manner{Style::vit, ScheduleKind::breadth_first, Precision::f32, 2, 1, true, true},
    Manner{Style::post_norm, ScheduleKind::zero_bubble, Precision::bf16, 2, 1, true, false},
};

Config config_with(const Shares& shares, const Manner& manner) {
  const int of_model = shares.tensor == 12 ? 6 : shares.tensor;
  Config c = tiny(manner.style, of_model, shares.data, manner.of_shard);
  c.reproducible.tensor = shares.tensor;
  if (shares.tensor == 12) c.model.gpt.key_value_heads = 12;
  c.grid = shares.grid;
  c.schedule.kind = manner.schedule;
  c.schedule.chunks = row_of(manner.schedule).has_chunks ? 2 : 1;
  c.train.precision = manner.precision;
  c.train.zero = manner.zero;
  c.train.sequence_parallel = manner.sequence_parallel;
  c.train.recompute = manner.recomputed ? WhichBlocks::block : WhichBlocks::none;
  return resolve(c);
}

/// Every `stride`-th of all manners on all grids.
std::vector<Config> layouts(std::size_t stride) {
  std::vector<Config> configs;
  std::size_t turn = 0;
  for (const Shares& shares : shares_of(all_ranks().size))
    for (const Manner& manner : manners)
      if (turn++ % stride == 0) configs.push_back(config_with(shares, manner));
  return configs;
}

/// Whether each axis that is cut has three shards on a rank.
bool has_three_on_each_rank(const Config& c) {
  return (c.grid.data == 1 || c.reproducible.data == 3 * c.grid.data) &&
         (c.grid.tensor == 1 || c.reproducible.tensor == 3 * c.grid.tensor);
}

/// Three shards on each rank are an option of the parity tests' layouts, which try all of them on two and on
/// four ranks; here are other divisors, and other numbers of ranks.
TEST(Divisors, HaveTheBitsOfOneRank) {
  const int ranks = all_ranks().size;
  std::vector<Config> configs = layouts(ranks == 6 ? 1 : 3);
  if (ranks == 2 || ranks == 4) std::erase_if(configs, has_three_on_each_rank);
  if (configs.empty()) GTEST_SKIP() << "the parity tests have them";
  compare(configs, 0, 4, outcome_of_steps, outcome_of_steps);
}

TEST(Divisors, HaveThemOnDevicesThatCarryTheirMessagesThemselves) {
  compare(layouts(7), 0, 3, outcome_of_the_queued, outcome_of_steps);
}

/// A table that ZeRO cuts within a tensor, whose sums go in parts.
TEST(Divisors, HaveThemWhereSumsGoInParts) {
  const int ranks = all_ranks().size;
  std::vector<Config> configs;
  for (const Shares& shares : shares_of(ranks)) {
    if (shares.grid.data == 1 || shares.tensor > 1) continue;
    Config large = config_with(shares, manners[configs.size() % 2 == 0 ? 2 : 3]);
    text_model(large).vocabulary = 40001;
    configs.push_back(resolve(large));
    if (ranks > 4) break;
  }
  compare(configs, 0, 3, outcome_of_steps, outcome_of_steps);
}

}  // namespace
}  // namespace mindpipe
