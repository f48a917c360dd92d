#include "plan/improve_tapes.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "config/config.h"
#include "plan/choose_tapes.h"
#include "plan/layout_trial.h"
#include "plan/network_on_paper.h"
#include "plan/priced_blocks.h"
#include "program/partition.h"

namespace mindpipe {
namespace {

/// What is simulated at most: layouts, and their actions.
constexpr int most_simulated = 200;
constexpr std::int64_t most_actions = 1'000'000;
/// Layouts from which changes begin, with different cuts, and how far from the best these are.
constexpr int most_starts = 3;
constexpr double near_best = 1.15;

/// Where chunks begin, and what becomes of each block's tape.
struct CutAndFates {
  std::vector<int> first_block;
  std::vector<TapeFate> of;
};

/// Changes of cuts and fates, while the simulator finds a shorter step that fits.
class TapeChanges {
 public:
  TapeChanges(LayoutSearch& search, const Config& config, const SearchFreedom& free, PricedBlocks& blocks)
      : search_(search),
        config_(config),
        blocks_(blocks),
        rules_{.recomputes = free.recompute,
               .swaps = free.swap,
               .given = {config.train.recompute, config.train.swap},
               .hidden = 1},
        may_move_cuts_(config.schedule.cuts.empty() && !config.repartition.moves()) {}

  /// Groups of micro-batches stay those of the layout, and are chosen anew of what is settled.
  void improve(LayoutCandidate best) {
    has_groups_ = row_of(best.layout.schedule).has_groups;
    if (has_groups_) config_.schedule.groups = best.groups;
    const Config known = with_layout(config_, best.layout);
    changeable_ = blocks_.changeable(known);
    in_flight_ = blocks_.in_flight(known);
    CutAndFates now = fates_of(best.layout, blocks_.laid_out(known));
    for (bool changed = true; changed;) {
      changed = false;
      for (const int chunk : slowest_first(best.layout))
        if ((changed = improve(best, now, chunk)) || !has_time()) break;
    }
    keep_what_costs_nothing(best, now);
  }

 private:
  bool has_time() const { return simulated_ < most_simulated && actions_ < most_actions; }

  CutAndFates fates_of(const LayoutChoice& layout, const Outline& outline) const {
    CutAndFates fates{.first_block = outline.first_block, .of = {}};
    for (int block = 0; block < outline.all_blocks(); ++block) {
      const bool is_free = changeable_[block] != 0;
      fates.of.push_back(is_free && layout.swap.has(block)        ? TapeFate::away
                         : is_free && layout.recompute.has(block) ? TapeFate::again
                                                                  : TapeFate::kept);
    }
    return fates;
  }

  /// The chunks, those of the stages with the longest passes first.
  std::vector<int> slowest_first(const LayoutChoice& layout) {
    const Outline& outline = blocks_.laid_out(with_layout(config_, layout));
    std::vector<std::int64_t> passes(outline.stages, 0);
    std::vector<int> chunks;
    for (int chunk = 0; chunk < outline.all_chunks(); ++chunk) {
      chunks.push_back(chunk);
      const int stage = outline.rank_of(chunk);
      for (int block = outline.first_block[chunk]; block < outline.first_block[chunk + 1]; ++block)
        passes[stage] += outline.lasting(stage, outline.cost(block).passes());
    }
    std::stable_sort(chunks.begin(), chunks.end(),
                     [&](int a, int b) { return passes[outline.rank_of(a)] > passes[outline.rank_of(b)]; });
    return chunks;
  }

  /// Takes the first change of a chunk that is better; whether there is one.
  bool improve(LayoutCandidate& best, CutAndFates& now, int chunk) {
    std::vector<CutAndFates> changes;
    add_changes_of_tapes(changes, now, chunk);
    if (may_move_cuts_) {
      add_moves(changes, now, chunk);
      add_moves(changes, now, chunk + 1);
    }
    for (CutAndFates& other : changes) {
      if (!has_time()) return false;
      const LayoutCandidate tried = candidate_of(best.layout, other);
      if (is_listed(tried.layout) || !try_for_less_than(best.cost(search_.price), tried)) continue;
      best = search_.all.back();
      now = std::move(other);
      return true;
    }
    if (!may_move_cuts_) return false;
    for (const int cut : {chunk, chunk + 1})
      for (const int step : {-1, 1})
        if (try_cut(best, now, cut, step)) return true;
    return false;
  }

  /// Moves a cut by a block and chooses all tapes anew, with fewer kept as long as they do not fit; whether
  /// that makes the step shorter.
  bool try_cut(LayoutCandidate& best, CutAndFates& now, int cut, int step) {
    const auto moved = moved_cut(now, cut, step);
    if (!moved) return false;
    LayoutChoice layout = best.layout;
    layout.cuts.assign(moved->begin() + 1, moved->end() - 1);
    for (const double hidden : hiding_shares) {
      layout.recompute = rules_.given.recompute;
      layout.swap = rules_.given.swap;
      std::vector<std::int64_t> over;
      for (int choices = 0; choices < most_choices && has_time(); ++choices) {
        const Config known = with_layout(config_, layout);
        TapeRules rules = rules_;
        rules.hidden = hidden;
        rules.copies = network_on_paper(known).copies;
        const auto choice = blocks_.fitting(known, over, rules);
        if (!choice) break;
        layout.recompute = choice->recompute;
        layout.swap = choice->swap;
        CutAndFates other = fates_of(layout, blocks_.laid_out(with_layout(config_, layout)));
        const LayoutCandidate tried = candidate_of(best.layout, other);
        if (is_listed(tried.layout)) break;
        if (try_for_less_than(best.cost(search_.price), tried)) {
          best = search_.all.back();
          now = std::move(other);
          return true;
        }
        if (search_.all.back().fate != LayoutCandidate::Fate::too_large) break;
        over = search_.all.back().over;
      }
    }
    return false;
  }

  /// The cuts with one of them moved; none: there is none of that number, or a chunk would be empty.
  static std::optional<std::vector<int>> moved_cut(const CutAndFates& now, int cut, int step) {
    if (cut <= 0 || cut + 1 >= std::ssize(now.first_block)) return std::nullopt;
    return with_boundary_moved(now.first_block, cut, step);
  }

  /// Keeps the tapes of blocks whose other fates are of no use.
  void keep_what_costs_nothing(LayoutCandidate& best, CutAndFates& now) {
    for (std::size_t block = 0; block < now.of.size() && has_time(); ++block) {
      if (now.of[block] == TapeFate::kept || !rules_.allow(TapeFate::kept, static_cast<int>(block), 1))
        continue;
      CutAndFates other = now;
      other.of[block] = TapeFate::kept;
      const LayoutCandidate tried = candidate_of(best.layout, other);
      if (is_listed(tried.layout) || !try_for_less_than((1 + 1e-12) * best.cost(search_.price), tried))
        continue;
      best = search_.all.back();
      now = std::move(other);
    }
  }

  bool may(TapeFate fate, int block, int chunk) const {
    return changeable_[block] != 0 && rules_.allow(fate, block, in_flight_[chunk]);
  }

  /// The edge of each run of one fate gets another one, or changes places with any other block.
  void add_changes_of_tapes(std::vector<CutAndFates>& changes, const CutAndFates& now, int chunk) const {
    const int first = now.first_block[chunk], last = now.first_block[chunk + 1];
    const auto is_edge = [&](int block, int beside) {
      return beside < first || beside >= last || changeable_[beside] == 0 || now.of[beside] != now.of[block];
    };
    std::vector<int> edges;
    for (int block = first; block < last; ++block)
      if (changeable_[block] != 0 && (is_edge(block, block - 1) || is_edge(block, block + 1)))
        edges.push_back(block);
    for (const int block : edges)
      for (const TapeFate fate : {TapeFate::kept, TapeFate::away, TapeFate::again}) {
        if (fate == now.of[block] || !may(fate, block, chunk)) continue;
        changes.push_back(now);
        changes.back().of[block] = fate;
      }
    for (std::size_t i = 0; i < edges.size(); ++i)
      for (std::size_t j = i + 1; j < edges.size(); ++j) {
        const int a = edges[i], b = edges[j];
        if (now.of[a] == now.of[b] || !may(now.of[b], a, chunk) || !may(now.of[a], b, chunk)) continue;
        changes.push_back(now);
        std::swap(changes.back().of[a], changes.back().of[b]);
      }
  }

  /// A block beside a cut goes to the chunk beyond it, with any fate.
  void add_moves(std::vector<CutAndFates>& changes, const CutAndFates& now, int cut) const {
    for (const int step : {-1, 1}) {
      const auto moved = moved_cut(now, cut, step);
      if (!moved) continue;
      const int block = step < 0 ? (*moved)[cut] : (*moved)[cut] - 1, chunk = step < 0 ? cut : cut - 1;
      for (const TapeFate fate : {TapeFate::kept, TapeFate::away, TapeFate::again}) {
        if (changeable_[block] == 0 ? fate != TapeFate::kept : !may(fate, block, chunk)) continue;
        changes.push_back({*moved, now.of});
        changes.back().of[block] = fate;
      }
    }
  }

  LayoutCandidate candidate_of(LayoutChoice layout, const CutAndFates& fates) {
    const TapeChoice choice = choice_of(fates.of, rules_);
    layout.recompute = choice.recompute;
    layout.swap = choice.swap;
    layout.cuts.clear();
    if (row_of(layout.schedule).in_v)  // whose cuts follow the tapes, and take long to find
      layout.cuts.assign(fates.first_block.begin() + 1, fates.first_block.end() - 1);
    const Config known = with_layout(config_, layout);
    return LayoutSketch(known, blocks_.laid_out(known)).candidate(layout, fates.first_block);
  }

  bool is_listed(const LayoutChoice& layout) const {
    return std::any_of(search_.all.begin(), search_.all.end(),
                       [&](const LayoutCandidate& known) { return known.layout == layout; });
  }

  /// Adds a layout to the search; whether it fits and costs less than `cost`.
  bool try_for_less_than(double cost, LayoutCandidate tried) {
    try_layout(config_, tried, search_.price, cost, std::nextafter(cost, 0), blocks_);
    search_.all.push_back(tried);
    if (has_groups_) search_.all.back().memory = 0;
    simulated_ += tried.actions > 0 ? 1 : 0;
    actions_ += tried.actions;
    return tried.fate == LayoutCandidate::Fate::simulated && tried.cost(search_.price) < cost;
  }

  LayoutSearch& search_;
  Config config_;
  PricedBlocks& blocks_;
  const TapeRules rules_;
  const bool may_move_cuts_;
  bool has_groups_ = false;
  std::vector<char> changeable_;  ///< whether each block's tape can be anything but kept
  std::vector<int> in_flight_;    ///< micro-batches of each chunk
  int simulated_ = 0;
  std::int64_t actions_ = 0;
};

}  // namespace

void improve_tapes(LayoutSearch& search, const Config& config, const SearchFreedom& free,
                   PricedBlocks& blocks) {
  std::vector<LayoutCandidate> starts;
  for (const int place : search.best) {
    const LayoutCandidate& one = search.all[place];
    const bool is_like_another = std::any_of(starts.begin(), starts.end(), [&](const LayoutCandidate& start) {
      return start.layout.cuts == one.layout.cuts && start.layout.schedule == one.layout.schedule;
    });
    if (is_like_another || one.memory == 0) continue;
    if (!starts.empty() && one.cost(search.price) > near_best * starts.front().cost(search.price)) break;
    starts.push_back(one);
    if (std::ssize(starts) == most_starts) break;
  }
  TapeChanges changes(search, config, free, blocks);
  for (const LayoutCandidate& start : starts) changes.improve(start);
}

}  // namespace mindpipe
