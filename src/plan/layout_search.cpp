#include "plan/layout_search.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <tuple>

#include "config/config.h"
#include "core/refusal.h"
#include "plan/cut_search.h"
#include "plan/improve_tapes.h"
#include "plan/layout_space.h"
#include "plan/layout_trial.h"
#include "plan/network_on_paper.h"
#include "plan/priced_blocks.h"
#include "plan/search_once.h"
#include "plan/subnet_search.h"
#include "program/partition.h"

namespace mindpipe {
namespace {

using Fate = LayoutCandidate::Fate;

/// Cuts of the few best layouts that are simulated: how many of each, and how far from the best these are.
constexpr int most_moves = 60;
constexpr int most_finalists = 3;
/// Layouts that are tried to say why another value was not chosen.
constexpr int most_tried = 3;
/// Layouts whose steps are timed roughly are planned whole up to here, as one of them may be the best.
constexpr double rough_costs = 1.02;
/// Nobody asks how much longer than this a step would be: its bound says enough.
constexpr double far_costs = 1.1;
/// Where less than this lies behind a step's passes, cuts that lengthen them are not worth the simulator.
constexpr double little_behind = 1.005;

/// Where ties are broken: less is better.
auto preference(const LayoutChoice& layout) {
  return std::tuple(layout.grid.tensor, layout.grid.pipeline, -layout.micro_batch, layout.zero,
                    layout.recompute, layout.swap, layout.chunks, layout.sequence_parallel, layout.schedule,
                    layout.subnet_cuts);
}

/// Counts a refused grid under the setting that its sentence begins with.
void count_refusal(LayoutSearch& search, std::string sentence) {
  if (const std::string where = "configuration: "; sentence.starts_with(where))
    sentence.erase(0, where.size());
  const std::string word = sentence.substr(0, sentence.find(' '));
  const bool is_setting = word.find('.') != std::string::npos;
  auto& [count, first] = search.refused[is_setting ? word : "other reasons"];
  if (count++ == 0) first = sentence;
}

/// The places of the simulated layouts that fit, the best first.
std::vector<int> ranking(const LayoutSearch& search) {
  const auto cost_of = [&](int place) { return search.all[place].cost(search.price); };
  std::vector<int> places;
  for (int place = 0; place < static_cast<int>(search.all.size()); ++place)
    if (search.all[place].fate == Fate::simulated) places.push_back(place);
  std::stable_sort(places.begin(), places.end(), [&](int a, int b) { return cost_of(a) < cost_of(b); });
  if (places.empty()) return places;
  const double limit = equal_costs * cost_of(places[0]);
  const auto equal_end =
      std::find_if(places.begin(), places.end(), [&](int place) { return cost_of(place) > limit; });
  std::stable_sort(places.begin(), equal_end, [&](int a, int b) {  // of one layout the best cut stays first
    return preference(search.all[a].layout) < preference(search.all[b].layout);
  });
  return places;
}

/// The layouts that rules allow, each with its bound.
void take_stock(LayoutSearch& search, const Config& config, int ranks, const SearchFreedom& free,
                PricedBlocks& blocks) {
  const bool is_supernet = row_of(config.model.kind).trains_subnets;
  SubnetSketches subnets;
  const std::vector<Coord> grids = grids_of(config, ranks, free);
  for (const Coord& grid : grids) {
    std::optional<std::string> refusal;
    bool allowed = false;
    for (const LayoutChoice& layout : layouts_of(config, grid, free)) {
      const auto refused = refusal_of([&] {
        if (is_supernet) return search.all.push_back(subnets.candidate(config, layout));
        const Config known = with_layout(config, layout);
        const LayoutSketch sketch(known, blocks.laid_out_roughly(known), true);
        const std::vector<int>& balanced = sketch.outline.first_block;
        search.all.push_back(sketch.candidate(layout, balanced));
        if (!free.cuts) return;
        const std::vector<int> improved = sketch.step.improved(balanced);
        if (improved != balanced) search.all.push_back(sketch.candidate(layout, improved));
        if (grids.size() > 1) return;
        for (const std::vector<int>& cut :
             every_cut(sketch.outline.all_blocks(), sketch.outline.all_chunks(), few_cuts))
          if (cut != balanced && cut != improved) search.all.push_back(sketch.candidate(layout, cut));
      });
      if (!refused) allowed = true;
      else if (!refusal) refusal = refused;
      if (refused && is_supernet)
        search.all.push_back({.layout = layout, .fate = Fate::refused, .refusal = *refused});
    }
    if (!allowed && refusal) count_refusal(search, *refusal);
  }
  std::stable_sort(search.all.begin(), search.all.end(),
                   [&](const LayoutCandidate& a, const LayoutCandidate& b) {
                     return std::tuple(a.least_cost(search.price), preference(a.layout)) <
                            std::tuple(b.least_cost(search.price), preference(b.layout));
                   });
}

}  // namespace

int LayoutSearch::count(Fate fate) const {
  return static_cast<int>(std::count_if(
      all.begin(), all.end(), [&](const LayoutCandidate& candidate) { return candidate.fate == fate; }));
}

std::vector<int> best_of_each(const LayoutSearch& search, int most) {
  std::vector<int> places;
  // Choices of single blocks are one way to run a model, as cuts are.
  const auto kind_of = [&](int place) {
    LayoutChoice layout = search.all[place].layout;
    for (ChosenBlocks* blocks : {&layout.recompute, &layout.swap})
      if (blocks->are_some()) blocks->numbers = {0};
    return preference(layout);
  };
  for (const int place : search.best) {
    const auto is_kin = [&](int other) { return kind_of(other) == kind_of(place); };
    if (static_cast<int>(places.size()) < most && std::none_of(places.begin(), places.end(), is_kin))
      places.push_back(place);
  }
  return places;
}

namespace {

/// Lets what does not fit at a place compute more blocks again or swap them, and puts that where its bound
/// belongs.
void choose_other_tapes(LayoutSearch& search, std::size_t place, const Config& config,
                        const SearchFreedom& free, PricedBlocks& blocks) {
  for (const LayoutCandidate& more : with_other_tapes(config, search.all[place], free, blocks)) {
    const auto behind = std::upper_bound(
        search.all.begin() + static_cast<std::ptrdiff_t>(place) + 1, search.all.end(),
        more.least_cost(search.price),
        [&](double cost, const LayoutCandidate& other) { return cost < other.least_cost(search.price); });
    search.all.insert(behind, more);
  }
}

}  // namespace

void settle(LayoutSearch& search, const Config& config, int wanted, PricedBlocks& blocks) {
  for (bool changed = true; changed;) {
    changed = false;
    search.best = ranking(search);
    const std::vector<int> places = best_of_each(search, static_cast<int>(search.best.size()));
    for (std::size_t i = 0; i < places.size(); ++i) {
      LayoutCandidate& candidate = search.all[places[i]];
      const double near = row_of(candidate.layout.schedule).splits_backward ? rough_costs : equal_costs;
      const bool is_wanted =
          std::cmp_less(i, wanted) ||
          candidate.cost(search.price) <= near * search.all[places.front()].cost(search.price);
      if (!is_wanted || candidate.memory > 0 || candidate.fate != Fate::simulated) continue;
      const LayoutCandidate& first = search.all[places.front()];
      const bool is_first_known = first.memory > 0 && first.fate == Fate::simulated;
      const bool may_be_best = std::cmp_less(i, wanted) || !is_first_known;
      blocks.plan_whole(config, candidate, search.price,
                        may_be_best ? 0 : equal_costs * first.cost(search.price));
      changed = true;
    }
  }
}

namespace {

/// What a layout costs as far as is known: simulated, or at least.
double known_cost(const LayoutCandidate& one, const StepPrice& price) {
  return one.fate == Fate::simulated ? one.cost(price) : one.least_cost(price);
}

/// The places of the two layouts of the least known cost that have what is asked for and may fit; -1: none.
/// `groups`: also those whose groups of micro-batches would have to be chosen, which takes long.
std::array<int, 2> two_cheapest(const LayoutSearch& search,
                                const std::function<bool(const LayoutChoice&)>& has, bool groups) {
  std::array<int, 2> places{-1, -1};
  const auto is_cheaper = [&](int place, int other) {
    return other < 0 ||
           known_cost(search.all[place], search.price) < known_cost(search.all[other], search.price);
  };
  for (int place = 0; place < static_cast<int>(search.all.size()); ++place) {
    const LayoutCandidate& one = search.all[place];
    const bool is_open = one.fate == Fate::slower && (groups || !row_of(one.layout.schedule).has_groups);
    if ((one.fate != Fate::simulated && !is_open) || !has(one.layout)) continue;
    if (is_cheaper(place, places[0])) places = {place, places[0]};
    else if (is_cheaper(place, places[1])) places[1] = place;
  }
  return places[0] < 0 && !groups ? two_cheapest(search, has, true) : places;
}

bool is_settled(const LayoutSearch& search, const LayoutChoice& layout) {
  return std::any_of(search.all.begin(), search.all.end(), [&](const LayoutCandidate& known) {
    return known.layout == layout && known.fate != Fate::slower;
  });
}

/// Simulates other cuts of a layout that may be better. Groups of micro-batches stay those of the first cut,
/// and are chosen anew of what is settled.
void improve_cuts(LayoutSearch& search, const Config& given, LayoutCandidate best, PricedBlocks& blocks) {
  const bool has_groups = row_of(best.layout.schedule).has_groups;
  Config config = given;
  if (has_groups) config.schedule.groups = best.groups;
  LayoutChoice plain = best.layout;
  plain.cuts.clear();
  const Config known = with_layout(config, plain);
  const Outline outline = blocks.laid_out(known);  // others are asked for below
  const LayoutSketch sketch(known, outline);
  if (row_of(best.layout.schedule).splits_backward)  // as roughly as the others are timed
    time_layout(config, best, blocks, search.price, 0);
  constexpr double never = std::numeric_limits<double>::infinity();
  const CutCosts costs{
      .bound =
          [&](const std::vector<int>& cut) {
            const LayoutCandidate candidate = sketch.candidate(plain, cut);
            const double least = candidate.least_cost(search.price);
            return least < best.cost(search.price) && is_settled(search, candidate.layout) ? never : least;
          },
      .simulated =
          [&](const std::vector<int>& cut) {
            LayoutCandidate candidate = sketch.candidate(plain, cut);
            const double cost = best.cost(search.price), least = best.least_cost(search.price);
            try_layout(config, candidate, search.price, cost, cost < little_behind * least ? least : cost,
                       blocks);
            search.all.push_back(candidate);
            if (has_groups) search.all.back().memory = 0;
            if (candidate.fate != Fate::simulated) return never;
            if (candidate.cost(search.price) < cost) best = candidate;
            return candidate.cost(search.price);
          }};
  cheap_cuts(sketch.first_block(best.layout), best.cost(search.price), costs, most_moves);
}

}  // namespace

int best_with(LayoutSearch& search, const Config& config, PricedBlocks& blocks,
              const std::function<bool(const LayoutChoice&)>& has) {
  const std::int64_t limit = config.memory.device_limit;
  const auto is_known_to_fit = [&](const LayoutCandidate& one) {
    return one.fate == Fate::simulated && (limit == 0 || one.memory > 0);
  };
  const auto is_far = [&](const LayoutCandidate& one) {
    return one.fate == Fate::slower && (limit == 0 || one.least_memory <= limit) &&
           one.least_cost(search.price) > far_costs * search.all[search.best.front()].cost(search.price);
  };
  for (int tried = 0; tried < most_tried;) {
    const auto [found, next] = two_cheapest(search, has, false);
    if (found < 0) return -1;
    LayoutCandidate& one = search.all[found];
    if (is_known_to_fit(one) || is_far(one)) return found;
    if (one.fate == Fate::slower && limit > 0 && one.least_memory > limit) {
      one.fate = Fate::too_large;
      continue;
    }
    if (one.fate == Fate::simulated) blocks.plan_whole(config, one);
    else
      time_layout(config, one, blocks, search.price,
                  next < 0 ? 0 : known_cost(search.all[next], search.price));
    if (one.fate != Fate::slower) ++tried;
  }
  const std::vector<int> known = ranking(search);
  const auto found = std::find_if(known.begin(), known.end(), [&](int place) {
    return is_known_to_fit(search.all[place]) && has(search.all[place].layout);
  });
  if (found != known.end()) return *found;
  const auto may_fit = [&](const LayoutCandidate& one) {
    return one.fate == Fate::slower && (limit == 0 || one.least_memory <= limit) && has(one.layout);
  };
  int least = -1;
  for (int place = 0; place < static_cast<int>(search.all.size()); ++place)
    if (may_fit(search.all[place]) && (least < 0 || search.all[place].least_cost(search.price) <
                                                        search.all[least].least_cost(search.price)))
      least = place;
  return least;
}

namespace {

/// Under a limit a V is looked at once others are timed: cuts that know its tapes, and tapes that fit, take
/// long to find, and a good step that is known excludes most of them.
bool looked_at_late(const LayoutCandidate& candidate, std::int64_t limit) {
  return limit > 0 && row_of(candidate.layout.schedule).in_v;
}

}  // namespace

LayoutSearch search_once(const Config& given, int ranks, const SearchFreedom& free, int wanted,
                         const StepPrice& price, double known, PricedBlocks& blocks,
                         const CostElsewhere& elsewhere) {
  LayoutSearch search{.price = price};
  Config config = given;
  const LinkDescription links = links_on_paper(given);  // files are read once
  config.device.links = {links.ranks_per_node,      links.latency, links.bytes, links.latency_between_nodes,
                         links.bytes_between_nodes, links.copies};
  take_stock(search, config, ranks, free, blocks);
  const std::int64_t limit = config.memory.device_limit;
  const bool is_one_grid = grids_of(config, ranks, free).size() == 1;  // of others there are too many
  double best = known;                                                 // of those that fit; 0: none yet
  double least = std::numeric_limits<double>::infinity();              // of others
  const auto look_at_all = [&](bool of_v) {
    for (std::size_t place = 0; place < search.all.size(); ++place) {
      LayoutCandidate& candidate = search.all[place];
      if (candidate.fate == Fate::refused || looked_at_late(candidate, limit) != of_v) continue;
      const bool are_enough = known > 0 || search.count(Fate::simulated) >= wanted;
      const double most = are_enough ? std::min(best, least) * equal_costs : 0;
      if (most > 0 && candidate.least_cost(price) > most) break;
      const bool is_chosen = candidate.choices > 0;  // what is missing says what to choose next
      if (limit > 0 && candidate.least_memory > limit && !is_chosen) candidate.fate = Fate::too_large;
      else try_layout(config, candidate, price, best, most, blocks);
      const double cost = candidate.cost(price);
      if (candidate.fate == Fate::simulated && (best == 0 || cost < best)) best = cost;
      // Where a layout fits, other cuts or larger groups may still be shorter, as they are where memory is
      // short.
      const bool asks_for_more = (free.swap || row_of(candidate.layout.schedule).has_groups) && limit > 0 &&
                                 candidate.fate == Fate::simulated && candidate.choices == 0;
      if ((candidate.fate == Fate::too_large || asks_for_more) && (free.recompute || free.swap) &&
          is_one_grid)
        choose_other_tapes(search, place, config, free, blocks);
    }
  };
  look_at_all(false);
  const bool are_late = std::any_of(search.all.begin(), search.all.end(), [&](const LayoutCandidate& one) {
    return one.fate == Fate::slower && looked_at_late(one, limit);
  });
  if (const double cost = elsewhere && are_late ? elsewhere(search) : 0; cost > 0) least = cost;
  look_at_all(true);
  settle(search, config, std::max(wanted, most_finalists), blocks);
  if (free.cuts && !search.best.empty()) {
    for (const int place : best_of_each(search, most_finalists))
      if (search.all[place].cost(price) <= near_costs * best)
        improve_cuts(search, config, search.all[place], blocks);
    settle(search, config, wanted, blocks);
  }
  const bool chooses_blocks = free.swap || (free.recompute && is_one_grid);
  if (chooses_blocks && limit > 0 && !search.best.empty()) {
    improve_tapes(search, config, free, blocks);
    settle(search, config, wanted, blocks);
  }
  return search;
}

void rank_again(LayoutSearch& search, const Config& config, int wanted, PricedBlocks& blocks) {
  const int chosen = search.best.front();
  settle(search, config, wanted, blocks);
  std::erase(search.best, chosen);
  search.best.insert(search.best.begin(), chosen);
}

}  // namespace mindpipe
