#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "config/chosen_blocks.h"
#include "plan/cost_model.h"
#include "plan/layout_search.h"
#include "plan/tape_cuts.h"

namespace mindpipe {

/// The blocks of a model as they are priced, once for all layouts that share their products in one way, and
/// what whole plans of layouts have said. Of one search: all but layouts and groups stay as they are.
class PricedBlocks {
 public:
  /// The blocks as they lie on the configuration's grid, until another configuration is asked for.
  const Outline& laid_out(const Config& config);
  /// The blocks as lay_out_roughly lays them; none are computed again where single ones are.
  const Outline& laid_out_roughly(const Config& config);
  /// What becomes of the tapes of a configuration that computes none or some of them again, or swaps them, so
  /// that those of each stage take `over` bytes less than they do; empty: as many less as are missing to
  /// memory.device_limit by what is known of the blocks alone. No value: nothing is enough.
  std::optional<TapeChoice> fitting(const Config& config, const std::vector<std::int64_t>& over,
                                    TapeRules rules);
  /// Cuts, with tapes that the rules allow, whose stages should fit into so much of the limit, where cuts are
  /// balanced: others are not asked for.
  std::vector<CutOfTapes> cuts_fitting(const Config& config, TapeRules rules, int percent);
  /// Whether each block can be computed again, and swapped.
  std::vector<char> changeable(const Config& config);
  /// Micro-batches that each chunk keeps at once; with the groups that the configuration has.
  std::vector<int> in_flight(const Config& config);
  /// Simulates a layout as simulate_layout does, unless that was done before, or the layout shares gradients
  /// for nothing and the one that does not share them is too large.
  void plan_whole(const Config& config, LayoutCandidate& candidate, const StepPrice& price = {},
                  double most = 0);

 private:
  struct Priced {
    std::unique_ptr<CostModel> costs;
    Outline outline;
    std::map<int, std::vector<std::int64_t>> shares;  ///< by data ranks: each unit's largest, bytes
  };
  /// Tensor ranks, sequence parallel, what is computed again, whether backwards are split, micro-batch.
  using Key = std::tuple<int, bool, WhichBlocks, bool, int>;
  static Key key_of(const Config& config, WhichBlocks recompute);
  Priced& priced_model(const Config& config, WhichBlocks recompute);
  Outline& priced(const Config& config, WhichBlocks recompute);
  /// Lays an outline out with cuts that know tapes as they were found before.
  void lay_out_as_before(Outline& outline, const Config& config);
  /// Whether a layout shares gradients for nothing and does not fit without that: it does not fit, either.
  bool is_too_large_unshared(const Config& config, LayoutCandidate& candidate);
  static const std::vector<std::int64_t>& shares_of(Priced& priced, int data);

  std::map<Key, Priced> known_;
  /// Cuts that know tapes: also by pipeline ranks, data ranks, schedule, and the blocks that are computed
  /// again or swapped.
  std::map<std::tuple<Key, int, int, ScheduleKind, ChosenBlocks, ChosenBlocks>, std::vector<int>> cuts_of_v_;
  /// Micro-batches in flight where nothing is computed again or swapped: also by the cuts.
  std::map<std::tuple<Key, int, int, ScheduleKind, std::vector<int>>, std::vector<int>> in_flight_;
  std::vector<std::pair<MicroBatchGroups, LayoutCandidate>> planned_;  ///< groups: those given
  Outline mixed_;  ///< where some blocks are computed again, or swapped
};

}  // namespace mindpipe
