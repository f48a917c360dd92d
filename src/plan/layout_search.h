#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "comm/grid.h"
#include "config/chosen_blocks.h"
#include "config/groups.h"
#include "config/kinds.h"
#include "program/clock/idle_clock.h"

namespace mindpipe {

class PricedBlocks;
struct Config;

/// The settings of a layout that a search may choose. The others stay as the configuration has them.
struct SearchFreedom {
  bool pipeline = false, data = false, tensor = false;
  bool schedule = false, chunks = false, cuts = false;
  bool zero = false, recompute = false, sequence_parallel = false;
  bool swap = false;  ///< where the grid is given, and memory.device_limit is short
  bool supernet = false, subnet_cuts = false;
  bool micro_batch = false;
};

/// One way to run a model on all ranks. None of its settings but the micro-batch changes a bit where
/// `reproducible` is given.
struct LayoutChoice {
  Coord grid{1, 1, 1, 1};
  ScheduleKind schedule = ScheduleKind::one_forward_one_backward;
  int chunks = 1;
  std::vector<int> cuts;  ///< empty: balanced
  int zero = 0;
  ChosenBlocks recompute;
  bool sequence_parallel = false;
  SubnetCuts subnet_cuts = SubnetCuts::home;
  int micro_batch = 0;  ///< 0: as the configuration has it
  ChosenBlocks swap = {};
  bool operator==(const LayoutChoice&) const = default;
};
LayoutChoice layout_of(const Config& config);
/// The configuration with this layout, resolved. Fails where a rule refuses it.
Config with_layout(const Config& config, const LayoutChoice& layout);
/// The configuration with this layout; none where a rule refuses it.
std::optional<Config> with_layout_if_allowed(const Config& config, const LayoutChoice& layout);
/// The micro-batches to choose from on so many data ranks: the smallest that divide what a data shard has of
/// the batch.
std::vector<int> micro_batches_of(const Config& config, const SearchFreedom& free, int data = 1);
/// Costs that differ by less count as equal.
inline constexpr double equal_costs = 1.001;

/// What layouts are compared by: so much for each second that a step lasts, and for each second that a rank
/// of it computes. Times alone, unless said otherwise.
struct StepPrice {
  double second = 1, work = 0;
  bool is_time() const { return work == 0; }
};

/// How the ranks of a supernet's layout spend their time on paper, in parts of it.
struct SubnetFigures {
  double speed_up = 0;        ///< over one stage that does everything
  double idle = 0, lost = 0;  ///< the mean of all ranks; what moves cost
  std::array<double, wait_reasons> because{};
  double ratio = 0;  ///< how long a stage's units are under way, in passes
};

/// A layout that was looked at, and how far.
struct LayoutCandidate {
  enum class Fate : std::uint8_t { slower, too_large, simulated, refused };
  LayoutChoice layout;
  Fate fate = Fate::slower;       ///< slower: its bound is above the best step
  std::int64_t bound = 0;         ///< nanoseconds that its step, or a subnet, takes at least
  std::int64_t least_memory = 0;  ///< bytes that a rank takes at least
  std::int64_t least_work = 0;    ///< nanoseconds that all ranks compute in a step, at least
  std::int64_t step = 0;          ///< nanoseconds of a step, or a subnet, simulated
  std::int64_t work = 0;          ///< nanoseconds that all ranks compute in a step, simulated
  std::int64_t memory = 0;        ///< bytes of the rank with the most; 0: not known
  std::int64_t tapes = 0;         ///< bytes of tapes of the rank with the most, as `memory`
  std::int64_t host = 0;          ///< bytes of the host, of the rank with the most, once planned whole
  bool is_beyond_host = false;    ///< whether that is more than memory.host_limit
  std::vector<std::int64_t> over =
      {};                    ///< bytes of each stage beyond the limit, at least, once its order is known
  std::int64_t actions = 0;  ///< entries of all ranks' lists, once simulated
  int choices = 0;           ///< how often the fates of its tapes were chosen
  std::vector<double> hidden = {};  ///< shares of passes, to hide copies, for which they were chosen
  std::string refusal = {};         ///< the sentence of the rule
  MicroBatchGroups groups = {};     ///< elastic groups of micro-batches, once planned whole
  std::optional<SubnetFigures> subnets = {};  ///< where a supernet was simulated
  /// What it costs at least, and as simulated.
  double least_cost(const StepPrice& price) const;
  /// Bytes that its fullest rank needs at least, as far as is known.
  std::int64_t least_need(std::int64_t limit) const;
  double cost(const StepPrice& price) const;
};

/// All layouts of so many ranks that rules allow, each with a time, a bound or a reason.
struct LayoutSearch {
  StepPrice price;
  std::vector<LayoutCandidate> all;  ///< by what they cost at least
  std::vector<int> best;             ///< places in `all` of those simulated that fit, the best first
  std::map<std::string, std::pair<int, std::string>> refused;  ///< by setting: how many grids, and a sentence
  int count(LayoutCandidate::Fate fate) const;
};

/// Finds the layout of the least cost by the simulator, the fastest unless `price` says otherwise, among
/// those that fit into memory.device_limit: each is simulated in the order of what it costs at least, until
/// that is above the best. Layouts within 0.1 % of it count as equal: fewer tensor ranks win, then fewer
/// stages, less sharding, less recomputation. The same configuration gives the same answer on every machine.
/// The few most promising grids are then searched by themselves, with more cuts and single blocks.
/// At least `wanted` layouts are simulated, where there are so many that fit. A supernet's are compared by
/// what a subnet takes: lanes, stages, shared products and batches, cuts.
/// `blocks`: new ones, which then know what the search has asked of them.
LayoutSearch search_layouts(const Config& config, int ranks, const SearchFreedom& free, int wanted,
                            const StepPrice& price, PricedBlocks& blocks);
LayoutSearch search_layouts(const Config& config, int ranks, const SearchFreedom& free, int wanted = 1,
                            const StepPrice& price = {});

/// Ranks what is simulated by now, behind the layout that was chosen.
void rank_again(LayoutSearch& search, const Config& config, int wanted, PricedBlocks& blocks);

/// The place in `all` of the best layout that fits and has what is asked for, which bounds find; where the
/// first few do not fit, the best of those that are known to; where all cost much more than the best layout
/// of all, the one of the least bound. -1: none.
int best_with(LayoutSearch& search, const Config& config, PricedBlocks& blocks,
              const std::function<bool(const LayoutChoice&)>& has);

/// The places of the best layouts that differ in more than their cuts, `most` of them.
std::vector<int> best_of_each(const LayoutSearch& search, int most);

/// What the simulator says of one layout; `candidate` has its words. `most`: one that puts weight gradients
/// off and costs more than that with the tapes that fit is left there, with its bound; 0: none.
void simulate_layout(const Config& config, LayoutCandidate& candidate, const StepPrice& price = {},
                     double most = 0);

}  // namespace mindpipe
