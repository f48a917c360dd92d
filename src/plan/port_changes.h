#pragma once
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "config/config.h"
#include "core/traffic_class.h"
#include "plan/layout_search.h"
#include "plan/priced_blocks.h"

namespace mindpipe {

/// A change of a configuration, simulated.
struct PortChange {
  std::string words;      ///< "schedule.kind=elastic schedule.chunks=4"
  std::int64_t time = 0;  ///< nanoseconds of a step, or of a subnet
};

/// The settings that a file leaves open (auto), with which a changed file would be planned anew.
struct OpenSettings {
  std::set<std::string> keys;  ///< degrees of the grid are among them
  /// What the file has in place of groups, cuts and fates of tapes that a search chose.
  MicroBatchGroups groups = {};
  std::vector<int> cuts = {};
  ChosenBlocks recompute = {}, swap = {};
  /// Chooses what becomes of tapes, where that is open, and the cuts with it; none: nothing fits.
  std::function<std::optional<Config>(const Config& changed)> choose_tapes = nullptr;
};

/// Finds changes that keep bits and memory.device_limit, for who is held up at ports: another schedule with
/// its groups, more chunks, or the axis of the traffic that holds ports within a node; of a supernet other
/// cuts. Each is simulated once, whatever pair asks for it. What becomes of tapes is chosen anew where it is
/// open; where that takes long, the words name blocks that other changes compute again.
class PortChanges {
 public:
  /// `config`: as it is planned; `open`: what it was chosen from.
  explicit PortChanges(const Config& config);
  PortChanges(const Config& config, const OpenSettings& open);
  /// Simulates what may help against traffic of this class.
  void simulate_for(TrafficClass holds);
  /// What is simulated, in words.
  const char* alternatives() const;
  /// The shortest of all that were simulated, if it is shorter than `time` by half a percent or more.
  std::optional<PortChange> best(std::int64_t time) const;
  /// The layouts that were planned.
  PricedBlocks& blocks() { return blocks_; }

 private:
  struct Known {
    LayoutChoice asked;   ///< with tapes as the file has them
    LayoutChoice chosen;  ///< with tapes as they were chosen
    PortChange change;    ///< time 0: it is refused, or does not fit
  };

  std::vector<LayoutChoice> layouts_for(TrafficClass holds) const;
  void simulate(const LayoutChoice& asked);
  Known with_tapes_chosen(const LayoutChoice& asked) const;
  Known with_tapes_named(const LayoutChoice& asked);
  std::vector<Known> shortest_known() const;
  bool may_be_better(const LayoutChoice& layout, std::int64_t best);
  bool chooses_tapes_of(const LayoutChoice& asked) const;
  std::string words_of_change(const LayoutChoice& then, bool names_tapes) const;
  PortChange other_cuts() const;

  const Config& config_;
  OpenSettings open_;
  bool of_subnets_;
  Config written_;  ///< with groups, cuts and fates of tapes as the file has them
  Config free_;     ///< with groups of the planner's, too
  PricedBlocks blocks_;
  std::vector<Known> known_;
  std::optional<PortChange> other_cuts_;  ///< supernet: those of own cuts, or of one
};

}  // namespace mindpipe
