#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "comm/grid.h"
#include "config/config.h"

namespace mindpipe {

/// The settings of a layout that a search may choose. The others stay as the configuration has them.
struct SearchFreedom {
  bool pipeline = false, data = false, tensor = false;
  bool schedule = false, chunks = false, cuts = false;
  bool zero = false, recompute = false, sequence_parallel = false;
};

/// One way to run a model on all ranks. None of its settings changes a bit where `reproducible` is given.
struct LayoutChoice {
  Coord grid{1, 1, 1, 1};
  ScheduleKind schedule = ScheduleKind::one_forward_one_backward;
  int chunks = 1;
  std::vector<int> cuts;  ///< empty: balanced
  int zero = 0;
  RecomputeKind recompute = RecomputeKind::none;
  bool sequence_parallel = false;
  bool operator==(const LayoutChoice&) const = default;
};
LayoutChoice layout_of(const Config& config);
/// The configuration with this layout, resolved. Fails where a rule refuses it.
Config with_layout(const Config& config, const LayoutChoice& layout);
/// "grid.pipeline=4 grid.data=2 ...": a layout as settings; those alone that one may be free to choose.
std::string words_of(const LayoutChoice& layout, const SearchFreedom& free);

/// A layout that was looked at, and how far.
struct LayoutCandidate {
  enum class Fate : std::uint8_t { slower, too_large, simulated, refused };
  LayoutChoice layout;
  Fate fate = Fate::slower;       ///< slower: its bound is above the best step
  std::int64_t bound = 0;         ///< nanoseconds that its step takes at least
  std::int64_t least_memory = 0;  ///< bytes that a rank takes at least
  std::int64_t step = 0;          ///< nanoseconds, simulated
  std::int64_t memory = 0;        ///< bytes of the rank with the most; 0: not known
  std::string refusal = {};       ///< the sentence of the rule
};

/// All layouts of so many ranks that rules allow, each with a time, a bound or a reason.
struct LayoutSearch {
  std::vector<LayoutCandidate> all;  ///< by bound
  std::vector<int> best;             ///< places in `all` of those simulated that fit, the best first
  std::map<std::string, std::pair<int, std::string>> refused;  ///< by setting: how many grids, and a sentence
  int count(LayoutCandidate::Fate fate) const;
};

/// Finds the fastest layout by the simulator, among those that fit into memory.device_limit: each is
/// simulated in the order of its bound until the next bound is above the best step. Layouts within 0.1 % of
/// it count as equal: fewer tensor ranks win, then fewer stages, less sharding, less recomputation. The same
/// configuration gives the same answer on every machine. At least `wanted` layouts are simulated, where there
/// are so many that fit.
LayoutSearch search_layouts(const Config& config, int ranks, const SearchFreedom& free, int wanted = 1);

/// The places of the best layouts that differ in more than their cuts, `most` of them.
std::vector<int> best_of_each(const LayoutSearch& search, int most);

/// What the simulator says of one layout; `candidate` has its words.
void simulate_layout(const Config& config, LayoutCandidate& candidate);

}  // namespace mindpipe
