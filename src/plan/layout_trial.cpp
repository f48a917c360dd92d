#include "plan/layout_trial.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "config/config.h"
#include "core/refusal.h"
#include "plan/group_choice.h"
#include "plan/lay_out.h"
#include "plan/memory_limits.h"
#include "plan/moves_of_run.h"
#include "plan/network_on_paper.h"
#include "plan/priced_blocks.h"
#include "plan/run_plan.h"
#include "plan/step_within.h"
#include "plan/subnet_search.h"
#include "program/partition.h"
#include "program/schedules/order_in_slab.h"
#include "program/schedules/step_order.h"
#include "program/step_on_paper.h"

namespace mindpipe {
namespace {

using Fate = LayoutCandidate::Fate;

/// Parts of the limit into which the smallest tapes of a cut are to fit, as what libraries work in is known
/// of whole plans alone.
constexpr std::array percents_of_limit{100, 93};

void take_times(LayoutCandidate& candidate, const StepTimes& times, int stages) {
  candidate.step = times.step;
  candidate.work = std::accumulate(times.busy.begin(), times.busy.end(), std::int64_t{0}) *
                   (num_ranks(candidate.layout.grid) / stages);
}

/// Whether a layout costs more than `most`, 0 for any cost, as its step takes so long at least; notes that as
/// its bound then.
bool costs_more(LayoutCandidate& candidate, std::int64_t at_least, const StepPrice& price, double most) {
  LayoutCandidate least = candidate;
  least.bound = std::max(candidate.bound, at_least);
  if (most == 0 || least.least_cost(price) <= most) return false;
  candidate.bound = least.bound;
  return true;
}

/// Whether a layout costs more than `most`, 0 for any cost, by the time that its step takes with all the
/// rooms that it could use; notes that as its bound then.
bool is_dearer(LayoutCandidate& candidate, std::int64_t with_all_rooms, const StepPrice& price, double most) {
  return costs_more(candidate, with_all_rooms / 100 * percent_in_rooms, price, most);
}

/// Together with what is_dearer allows: cuts that know tapes make a step shorter, by 10 % at most where that
/// was looked at; a rule for each stage, by 1 %.
constexpr int percent_of_rough_cuts = 93, percent_of_cuts = 102;

/// What cuts that know tapes need is never so much less, in percent of what balanced ones need.
constexpr int percent_of_balanced = 67;

/// What a step of a schedule that puts weight gradients off lasts by the inner clock.
std::int64_t step_by_clock(const Config& known, const Outline& outline) {
  const ScheduleKind schedule = known.schedule.kind;
  return step_without_gaps(make_order(schedule, request_of(outline)), outline,
                           PriceList(outline, network_on_paper(known)), most_tapes(outline, schedule));
}

/// Notes what each stage has beyond the limit.
void take_excess(LayoutCandidate& candidate, const std::vector<std::int64_t>& bytes, std::int64_t limit) {
  candidate.over.clear();
  for (const std::int64_t total : bytes)
    candidate.over.push_back(limit > 0 ? std::max<std::int64_t>(0, total - limit) : 0);
}

/// Whether the stages take too much at least; notes that.
bool is_too_large(LayoutCandidate& candidate, const std::vector<std::int64_t>& least, std::int64_t limit) {
  if (limit == 0 || std::ranges::max(least) <= limit) return false;
  candidate.least_memory = std::ranges::max(least);
  take_excess(candidate, least, limit);
  candidate.fate = Fate::too_large;
  return true;
}

/// What makes a plan of a schedule that puts weight gradients off keep to the limit, by what is known of
/// blocks alone.
void allow_what_is_left(Outline& outline, const Config& known) {
  std::vector<std::int64_t> room = least_beside_tapes(outline, known.train.recompute);
  for (std::int64_t& bytes : room) bytes = known.memory.device_limit - bytes;
  allow_tapes(outline, known.schedule.kind, room);
}

/// What the stages take at least: whole backwards leave as few tapes as can be.
std::vector<std::int64_t> least_bytes(const Config& known, const Outline& outline) {
  const OrderRequest request = request_of(outline, known.schedule.groups);
  return least_memory(outline, make_order(known.schedule.kind, request), known.train.recompute);
}

/// Whether a step that has one order, but for weight gradients that are put off, may fit into the limit and
/// cost `most` at most. Notes what is known of that.
bool may_do(LayoutCandidate& candidate, const Config& known, Outline outline, const StepPrice& price,
            double most) {
  const ScheduleKind schedule = known.schedule.kind;
  const std::int64_t limit = known.memory.device_limit;
  if (limit == 0 || schedule == ScheduleKind::searched) return true;
  std::vector<std::int64_t> least = least_bytes(known, outline);
  if (is_too_large(candidate, least, limit)) {
    if (!cuts_know_tapes(known)) return false;
    lay_out_roughly(outline, known);  // a plan tries these cuts, too
    least = least_bytes(known, outline);
    if (is_too_large(candidate, least, limit)) return false;
    candidate.fate = Fate::slower;
  }
  candidate.least_memory = std::ranges::max(least);
  take_excess(candidate, least, limit);
  if (!row_of(schedule).splits_backward) return true;
  allow_what_is_left(outline, known);
  return !is_dearer(candidate, step_by_clock(known, outline), price, most);
}

/// Whether a step that puts weight gradients off costs more than `most` with the tapes that the limit leaves:
/// by an order that is fitted roughly, then by one that is fitted closely.
bool is_dearer_in_limit(LayoutCandidate& candidate, const Config& known, Outline outline,
                        const StepPrice& price, double most) {
  const ScheduleKind schedule = known.schedule.kind;
  if (most == 0 || schedule == ScheduleKind::searched || outline.tapes_percent > 0) return false;
  allow_what_is_left(outline, known);
  const Network network = network_on_paper(known);
  const Order order = order_of_step(outline, schedule, network, {}, Fit::rough);
  const std::int64_t step = StepOrder(outline, PriceList(outline, network), order).run({});
  if (is_dearer(candidate, step / 100 * percent_of_cuts, price, most)) return true;
  const std::int64_t closely =
      StepBound(outline, network, true).of(order_of_step(outline, schedule, network));
  return costs_more(candidate, closely / 100 * percent_with_fewer_tapes, price, most);
}

/// Looks at a layout, which a rule may refuse.
template <class Look>
void unless_refused(LayoutCandidate& candidate, Look look) {
  if (auto refusal = refusal_of(look)) {
    candidate.fate = Fate::refused;
    candidate.refusal = std::move(*refusal);
  }
}

}  // namespace

LayoutSketch::LayoutSketch(const Config& known, const Outline& laid_out, bool roughly)
    : outline(laid_out),
      network(network_on_paper(known)),
      step(outline, network, row_of(known.schedule.kind).splits_backward),
      fills(outline.chunks == 1),
      open_cuts(roughly && cuts_know_tapes(known)) {}

std::vector<int> LayoutSketch::first_block(const LayoutChoice& layout) const {
  return layout.cuts.empty() ? outline.first_block
                             : manual_cuts(layout.cuts, outline.all_blocks(), outline.all_chunks());
}

LayoutCandidate LayoutSketch::candidate(LayoutChoice layout, const std::vector<int>& first_block) const {
  if (first_block != outline.first_block) layout.cuts.assign(first_block.begin() + 1, first_block.end() - 1);
  const bool may_move = open_cuts && layout.cuts.empty();
  const std::int64_t least = may_move ? least_memory_of_any_cut(outline, layout.recompute)
                                      : least_memory(outline, first_block, fills, layout.recompute);
  return {.layout = std::move(layout),
          .bound = may_move ? step.least_work() / outline.stages : step.of(first_block),
          .least_memory = least,
          .least_work = step.least_work() * num_ranks(layout.grid) / layout.grid.pipeline};
}

namespace {

/// Counts the most that a plan takes on each stage, beside what other plans of the same run take there.
void count_memory(const RunPlan& plan, LayoutCandidate& candidate, std::vector<std::int64_t>& totals) {
  for (int stage = 0; stage < plan.outline.stages; ++stage) {
    const BytesByClass& bytes = plan.most_memory(stage);
    totals[stage] = std::max(totals[stage], total_of(bytes));
    candidate.memory = std::max(candidate.memory, totals[stage]);
    candidate.tapes = std::max(candidate.tapes, bytes[static_cast<int>(MemoryClass::activations)]);
    candidate.host = std::max(candidate.host, plan.most_on_host(stage));
  }
}

}  // namespace

void simulate_layout(const Config& config, LayoutCandidate& candidate, const StepPrice& price, double most) {
  const std::int64_t limit = config.memory.device_limit;
  unless_refused(candidate, [&] {
    const Config known = with_layout(config, candidate.layout);
    LayoutCandidate least = candidate;
    const auto is_too_long = [&](std::int64_t at_least) {
      least.bound = std::max(candidate.bound, at_least);
      return most > 0 && least.least_cost(price) > most;
    };
    const RunPlan plan = make_run_plan(known, Purpose::training, {}, 1, {}, {}, is_too_long);
    if (plan.left_at > 0) {
      candidate.bound = std::max(candidate.bound, plan.left_at);
      candidate.step = candidate.work = 0;
      candidate.fate = Fate::slower;
      return;
    }
    take_times(candidate, {plan.training.expected.step, plan.training.expected.busy}, plan.outline.stages);
    candidate.groups = plan.groups;
    if (!plan.groups.empty()) {  // which only a whole plan has
      candidate.actions = 0;
      for (const auto& list : plan.training.program.ranks) candidate.actions += std::ssize(list);
    }
    require_stashes(plan, known.train.swap);
    if (plan.subnets) take_figures(known, plan, candidate);
    candidate.host = 0;
    std::vector<std::int64_t> totals(plan.outline.stages, 0);
    count_memory(plan, candidate, totals);
    if (known.repartition.every > 0) count_memory(with_room_to_move(known, plan), candidate, totals);
    for (const PlannedMove& move : plan_moves(known, plan, known.repartition.at)) {
      count_memory(move.during, candidate, totals);
      count_memory(move.after, candidate, totals);
    }
    take_excess(candidate, totals, limit);
    const std::int64_t host_limit = known.memory.host_limit;
    candidate.is_beyond_host = host_limit > 0 && candidate.host > host_limit;
    const bool fits_device = limit == 0 || candidate.memory <= limit;
    candidate.fate = fits_device && !candidate.is_beyond_host ? Fate::simulated : Fate::too_large;
  });
}

void time_layout(const Config& config, LayoutCandidate& candidate, PricedBlocks& blocks,
                 const StepPrice& price, double most) {
  if (row_of(config.model.kind).trains_subnets) return simulate_layout(config, candidate);
  bool is_planned_whole = false;
  unless_refused(candidate, [&] {
    const Config known = with_layout(config, candidate.layout);
    const auto is_too_long = [&](const Outline& laid_out, int percent) {
      require_few_actions(laid_out, known.schedule.kind);
      return most > 0 && is_dearer(candidate, step_by_clock(known, laid_out) / 100 * percent, price, most);
    };
    candidate.fate = Fate::slower;
    const std::int64_t limit = known.memory.device_limit;
    if (cuts_know_tapes(known)) {
      const Outline& rough = blocks.laid_out_roughly(known);
      if (is_too_long(rough, percent_of_rough_cuts)) return;
      const std::vector<std::int64_t> balanced = least_bytes(known, rough);
      if (std::ranges::max(balanced) / 100 * percent_of_balanced > limit &&
          is_too_large(candidate, balanced, limit))
        return;
    }
    const Outline& outline = blocks.laid_out(known);
    require_few_actions(outline, known.schedule.kind);
    const LayoutSketch sketch(known, outline);
    if (cuts_know_tapes(known) && is_too_long(outline, percent_of_cuts)) return;
    const MicroBatchGroups& groups = known.schedule.groups;
    const bool has_open_groups =
        row_of(known.schedule.kind).has_groups && (groups.forward.empty() || groups.backward.empty());
    if (has_open_groups) {  // which a whole plan chooses
      std::vector<std::int64_t> fewest;
      const auto may_fit = [&](const Order& order) {
        const std::vector<std::int64_t> least = least_memory(outline, order, known.train.recompute);
        if (fewest.empty() || std::ranges::max(least) < std::ranges::max(fewest)) fewest = least;
        return limit == 0 || std::ranges::max(least) <= limit;
      };
      const auto fastest = fastest_of_groups(outline, sketch.network, groups, may_fit);
      is_planned_whole =
          !is_too_large(candidate, fewest, limit) && !is_dearer(candidate, *fastest, price, most);
      return;
    }
    if (!may_do(candidate, known, outline, price, most)) return;
    const bool splits_backward = row_of(known.schedule.kind).splits_backward;
    const Order order = order_of_step(outline, known.schedule.kind, sketch.network, groups, Fit::rough);
    const bool takes_fewer = limit > 0 && splits_backward &&
                             std::ranges::max(least_memory(outline, order, known.train.recompute)) > limit;
    if (takes_fewer) {
      is_planned_whole = !is_dearer_in_limit(candidate, known, outline, price, most);
      return;
    }
    if (!splits_backward)  // else a closer fit may be shorter
      candidate.bound = std::max(candidate.bound, sketch.step.of(order));
    if (most > 0 && candidate.least_cost(price) > most) return;
    StepOnPaper step(outline, order, sketch.network);
    if (is_dearer(candidate, step.with_all_rooms(), price, most)) return;
    take_times(candidate, step.in_rooms(), outline.stages);
    candidate.actions = step.actions();
    candidate.groups = groups;
    candidate.fate = Fate::simulated;
  });
  if (is_planned_whole) blocks.plan_whole(config, candidate, price, most);
}

void try_layout(const Config& config, LayoutCandidate& candidate, const StepPrice& price, double best,
                double most, PricedBlocks& blocks) {
  time_layout(config, candidate, blocks, price, most);
  const bool leads = best == 0 || candidate.cost(price) < best;
  if (config.memory.device_limit > 0 && candidate.fate == Fate::simulated && leads && candidate.memory == 0)
    blocks.plan_whole(config, candidate, price, most);
}

namespace {

/// Groups for which tapes are chosen: those that were planned and do not fit, or else the fewest tapes that
/// there are, and some that are faster and have more.
std::vector<MicroBatchGroups> groups_to_choose_for(const Config& config, const LayoutCandidate& full,
                                                   PricedBlocks& blocks) {
  constexpr std::size_t most = 4;
  if (full.choices > 0 && !full.groups.empty()) return {full.groups};
  const Config known = with_layout(config, full.layout);
  return groups_worth_tapes(blocks.laid_out(known), network_on_paper(known), known.schedule.groups, most);
}

/// A layout with other tapes, one after another.
class OtherTapes {
 public:
  OtherTapes(const Config& config, const LayoutCandidate& full, const SearchFreedom& free,
             PricedBlocks& blocks)
      : config_(config), full_(full), free_(free), blocks_(blocks) {}

  void swap_all() {
    const ChosenBlocks all = WhichBlocks::block;
    const ChosenBlocks again = free_.recompute ? ChosenBlocks() : full_.layout.recompute;
    if (again != all && full_.layout.swap != all)
      add(with_layout(config_, full_.layout), {again, all}, TapeRules::smallest, full_.layout.cuts);
  }

  /// Chooses tapes for these groups, which stay open in what is made: they are among those that then fit.
  /// `over`: what each stage has too much; empty: as far as blocks alone say.
  void choose(const MicroBatchGroups& groups, const std::vector<std::int64_t>& over, double hidden) {
    Config known = with_layout(config_, full_.layout);
    known.schedule.groups = groups;
    const TapeRules rules{.recomputes = free_.recompute,
                          .swaps = free_.swap,
                          .hidden = hidden,
                          .copies = network_on_paper(known).copies};
    for (const int percent : percents_of_limit)
      if (full_.hidden.empty())
        for (const CutOfTapes& cut : blocks_.cuts_fitting(known, rules, percent))
          add(known, cut.choice, hidden, cut.cuts);
    const std::optional<TapeChoice> fitting = blocks_.fitting(known, over, rules);
    if (!fitting || *fitting == TapeChoice{full_.layout.recompute, full_.layout.swap}) return;
    const bool in_v = row_of(known.schedule.kind).in_v;  // finding its cuts anew takes long
    if (!in_v) add(known, *fitting, hidden, full_.layout.cuts);
    if (!in_v && (!free_.swap || !full_.layout.cuts.empty())) return;
    const std::vector<int>& now = blocks_.laid_out(known).first_block;
    add(known, *fitting, hidden, std::vector<int>(now.begin() + 1, now.end() - 1));
  }

  std::vector<LayoutCandidate> take() { return std::move(others_); }

 private:
  /// Balanced cuts move with what is computed again; those for which the choice was made are tried, too.
  void add(Config known, const TapeChoice& choice, double hidden, const std::vector<int>& cuts) {
    LayoutChoice layout = full_.layout;
    layout.recompute = known.train.recompute = choice.recompute;
    layout.swap = known.train.swap = choice.swap;
    layout.cuts = known.schedule.cuts = cuts;
    const auto alike = std::find_if(others_.begin(), others_.end(),
                                    [&](const LayoutCandidate& other) { return other.layout == layout; });
    if (alike != others_.end()) {
      if (alike->hidden.back() != hidden) alike->hidden.push_back(hidden);
      return;
    }
    const LayoutSketch sketch(known, blocks_.laid_out(known));
    LayoutCandidate& made = others_.emplace_back(sketch.candidate(layout, sketch.first_block(layout)));
    made.choices = full_.choices + 1;
    made.hidden = {hidden};
  }

  const Config& config_;
  const LayoutCandidate& full_;
  const SearchFreedom& free_;
  PricedBlocks& blocks_;
  std::vector<LayoutCandidate> others_;
};

}  // namespace

std::vector<LayoutCandidate> with_other_tapes(const Config& config, const LayoutCandidate& full,
                                              const SearchFreedom& free, PricedBlocks& blocks) {
  const bool is_least = free.recompute && full.layout.recompute == WhichBlocks::block;
  if (is_least || full.choices == most_choices) return {};
  std::vector<double> shares{0};
  if (free.swap) shares.assign(hiding_shares.begin(), hiding_shares.end());
  if (!full.hidden.empty()) shares = full.hidden;
  OtherTapes others(config, full, free, blocks);
  if (free.swap && full.choices == 0) others.swap_all();
  std::vector<MicroBatchGroups> all{{}};
  const bool has_groups = row_of(full.layout.schedule).has_groups;
  if (has_groups) refusal_of([&] { all = groups_to_choose_for(config, full, blocks); });
  for (const double hidden : shares)
    for (const MicroBatchGroups& groups : all) {
      const bool is_first = groups == all.front();
      if (!is_first && hidden != shares.front()) continue;
      // What is missing is known of the groups that were planned and do not fit, the first.
      const bool is_known = !has_groups || (is_first && full.fate == Fate::too_large);
      refusal_of([&] { others.choose(groups, is_known ? full.over : std::vector<std::int64_t>{}, hidden); });
    }
  return others.take();
}

}  // namespace mindpipe
