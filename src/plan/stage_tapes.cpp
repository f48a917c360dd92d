#include "plan/stage_tapes.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "plan/tape_bytes.h"
#include "program/swapped_blocks.h"

namespace mindpipe {
namespace {

constexpr std::int64_t most_combinations = 100000;

/// Blocks of a chunk that cost alike and may become the same, the lowest first.
struct Alike {
  std::vector<int> blocks;
  int in_flight = 1;
  std::int64_t more_time = 0;  ///< time that computing it again takes
  std::int64_t less_bytes = 0;
  std::int64_t leaves = 0;  ///< bytes that it keeps where it is computed again
  std::int64_t copied = 0;  ///< bytes of its segment
  bool keeps = true, computes = true, swaps = true;
  double time_of_byte() const { return static_cast<double>(more_time) / static_cast<double>(less_bytes); }
  std::int64_t combinations() const {
    const auto count = static_cast<std::int64_t>(blocks.size());
    return keeps && computes && swaps ? (count + 1) * (count + 2) / 2 : count + 1;
  }
};

/// What a choice costs a stage: the longer of its passes and its copies, then what is copied.
using Cost = std::pair<double, std::int64_t>;

/// One stage, and what becomes of its blocks.
class StageChoice {
 public:
  StageChoice(const Outline& kept, const Outline& again, int stage, const std::vector<BlocksInFlight>& runs,
              const TapeRules& rules)
      : kept_(kept), runs_(runs), rules_(rules), first_(runs.front().first) {
    if (!rules.host_limits.empty()) host_limit_ = rules.host_limits[stage];
    chosen_.assign(runs.back().last - first_, TapeFate::kept);
    using Key = std::tuple<int, std::int64_t, std::int64_t, std::int64_t, bool, bool, bool>;
    std::map<Key, Alike> alike;
    for (const BlocksInFlight& run : runs)
      for (int block = run.first; block < run.last; ++block) {
        const std::int64_t more = again.cost(block).passes() - kept.cost(block).passes(),
                           saved = kept.cost(block).saved, leaves = bytes_leaving(kept, block);
        passes_ += kept.cost(block).passes();
        if (more <= 0 || saved <= leaves) continue;
        const auto may = [&](TapeFate fate) { return rules.allow(fate, block, run.in_flight); };
        const Key key{run.first,          more, saved, leaves, may(TapeFate::kept), may(TapeFate::again),
                      may(TapeFate::away)};
        Alike& kind = alike[key];
        kind.blocks.push_back(block);
        kind.in_flight = run.in_flight;
        kind.more_time = more;
        kind.less_bytes = saved - leaves;
        kind.leaves = leaves;
        kind.copied = bytes_in_segment(kept, block, run.last);
        std::tie(kind.keeps, kind.computes, kind.swaps) =
            std::tuple(may(TapeFate::kept), may(TapeFate::again), may(TapeFate::away));
      }
    for (auto& [key, kind] : alike) kinds_.push_back(std::move(kind));
  }

  StageTapes tapes() const {
    StageTapes made{.bytes = bytes()};
    std::int64_t copied = 0, computed = 0;
    for (const BlocksInFlight& run : runs_)
      for (int block = run.first; block < run.last; ++block) made.fates.push_back(fate_of(block));
    for (const Alike& kind : kinds_)
      for (const int block : kind.blocks) {
        if (fate_of(block) == TapeFate::again) computed += kind.more_time;
        if (fate_of(block) == TapeFate::away) copied += kind.copied;
      }
    std::tie(made.time, made.copied) = cost_of(computed, copied);
    return made;
  }

  /// Makes the choice; whether one fits.
  bool fit(std::int64_t limit) {
    if (rules_.hidden == TapeRules::smallest) {
      make_smallest();
      return true;
    }
    std::int64_t combinations = 1;
    for (const Alike& kind : kinds_)
      if ((combinations *= kind.combinations()) > most_combinations) return fit_by_worth(limit);
    try_all(0, 0, 0, 0, limit);
    if (best_) chosen_ = best_->second;
    return best_.has_value();
  }

 private:
  /// Whether one more block of a kind fits on the host.
  bool fits_on_host(const Alike& kind, std::int64_t on_host) const {
    return !host_limit_ || on_host + kind.copied * kind.in_flight <= *host_limit_;
  }

  TapeFate fate_of(int block) const { return chosen_[block - first_]; }
  void choose(int block, TapeFate fate) { chosen_[block - first_] = fate; }

  /// Bytes of the tapes with the present choice.
  std::int64_t bytes() const {
    std::int64_t sum = 0;
    for (const BlocksInFlight& run : runs_)
      sum += bytes_of_run(kept_, run, [this](int block) { return fate_of(block); });
    return sum;
  }

  Cost cost_of(std::int64_t again, std::int64_t copied) const {
    const double passes = static_cast<double>(passes_ + again);
    const double hidden = rules_.hidden > 0 ? rules_.hidden : 1;  // those that are given
    return {std::max(passes, static_cast<double>(rules_.copies.carries(copied)) / hidden), copied};
  }

  void try_all(std::size_t number, std::int64_t again, std::int64_t copied, std::int64_t on_host,
               std::int64_t limit) {
    const Cost cost = cost_of(again, copied);
    if ((best_ && cost >= best_->first) || (host_limit_ && on_host > *host_limit_)) return;
    if (number == kinds_.size()) {
      if (bytes() <= limit) best_.emplace(cost, chosen_);
      return;
    }
    const Alike& kind = kinds_[number];
    const int count = static_cast<int>(kind.blocks.size());
    for (int away = 0; away <= count; ++away)
      for (int computed = 0; away + computed <= count; ++computed) {
        const bool is_allowed = (away == 0 || kind.swaps) && (computed == 0 || kind.computes) &&
                                (away + computed == count || kind.keeps);
        if (!is_allowed) continue;
        for (int i = 0; i < count; ++i)
          choose(kind.blocks[i], i < away              ? TapeFate::away
                                 : i < away + computed ? TapeFate::again
                                                       : TapeFate::kept);
        try_all(number + 1, again + computed * kind.more_time, copied + away * kind.copied,
                on_host + away * kind.copied * kind.in_flight, limit);
      }
  }

  /// Takes for each kind what needs the fewest bytes, as far as they fit on the host.
  void make_smallest() {
    std::int64_t on_host = 0;
    for (const Alike& kind : kinds_) {
      const std::int64_t again = kind.in_flight * kind.leaves,
                         away = slots_of_swapped(kind.in_flight) * kind.copied;
      for (const int block : kind.blocks) {
        const bool swaps = kind.swaps && (!kind.computes || away < again) && fits_on_host(kind, on_host);
        choose(block, swaps           ? TapeFate::away
                      : kind.computes ? TapeFate::again
                      : kind.keeps    ? TapeFate::kept
                                      : TapeFate::away);
        if (fate_of(block) == TapeFate::away) on_host += kind.copied * kind.in_flight;
      }
    }
  }

  /// Swaps what costs the most time for each byte if it is computed again, while copies are hidden; then
  /// computes again what costs the least, until the rest fits.
  bool fit_by_worth(std::int64_t limit) {
    std::vector<Alike> order = kinds_;
    std::stable_sort(order.begin(), order.end(),
                     [](const Alike& a, const Alike& b) { return a.time_of_byte() > b.time_of_byte(); });
    for (const Alike& kind : order)
      for (const int block : kind.blocks)
        if (!kind.keeps) choose(block, kind.computes ? TapeFate::again : TapeFate::away);
    if (bytes() <= limit) return true;
    std::int64_t copied = 0, on_host = 0;
    for (const Alike& kind : order)
      for (const int block : kind.blocks) {
        const bool is_hidden = cost_of(0, copied + kind.copied).first <= static_cast<double>(passes_);
        if (!kind.swaps || rules_.hidden == 0 || !is_hidden || !fits_on_host(kind, on_host)) break;
        on_host += kind.copied * kind.in_flight;
        copied += kind.copied;
        choose(block, TapeFate::away);
        if (bytes() <= limit) return true;
      }
    std::reverse(order.begin(), order.end());
    for (const Alike& kind : order)
      for (const int block : kind.blocks) {
        if (!kind.computes || fate_of(block) != TapeFate::kept) continue;
        choose(block, TapeFate::again);
        if (bytes() <= limit) return true;
      }
    return false;
  }

  const Outline& kept_;
  const std::vector<BlocksInFlight>& runs_;
  const TapeRules& rules_;
  int first_;
  std::vector<Alike> kinds_;
  std::vector<TapeFate> chosen_;  ///< from the first block of the first run on
  std::optional<std::pair<Cost, std::vector<TapeFate>>> best_;
  std::optional<std::int64_t> host_limit_;
  std::int64_t passes_ = 0;  ///< time of a forward and a backward of the stage
};

}  // namespace

std::optional<StageTapes> choose_stage_tapes(const Outline& kept, const Outline& again, int stage,
                                             const std::vector<BlocksInFlight>& runs, std::int64_t limit,
                                             const TapeRules& rules) {
  StageChoice choice(kept, again, stage, runs, rules);
  if (!choice.fit(limit)) return std::nullopt;
  return choice.tapes();
}

}  // namespace mindpipe
