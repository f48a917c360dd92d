#include "program/schedules/order_in_slab.h"

#include <algorithm>
#include <utility>

#include "program/make_program.h"
#include "program/place.h"
#include "program/schedules/order_runs.h"
#include "program/schedules/order_search.h"
#include "program/tape_slab.h"

namespace mindpipe {
namespace {

/// Rooms of tapes leave gaps between them: what an order may hold at a time is lowered so far, in such steps
/// of what 1f1b holds, until its slab keeps the limit. So a larger limit tries what smaller ones do of rules
/// for all stages.
constexpr int least_percent = 80;
/// Gaps of orders that are searched are known afterwards only, and an order that stands still with some bytes
/// may go on with fewer: they are sought with less until they fit, down to the latter where a limit is given.
constexpr int searched_percents[] = {100, 90, 80, 70, 60, 50, 40, 30, 20};

/// Bytes of a stage's slab of tapes; `enough` or fewer: it could be smaller; `most` or more: it could be
/// larger.
std::int64_t slab_of(const std::vector<Pass>& passes, const Outline& outline, std::int64_t enough,
                     std::int64_t most = std::numeric_limits<std::int64_t>::max()) {
  std::vector<TapePass> tapes;
  tapes.reserve(passes.size());
  for (const Pass& pass : passes)
    tapes.push_back({.kind = pass.kind, .chunk = pass.chunk, .micro_batch = pass.micro_batch});
  const auto sizes = [&](int chunk, bool) { return sizes_of_rooms(outline, chunk); };
  const auto at_least_none = [](std::int64_t bytes) {
    return static_cast<std::size_t>(std::max<std::int64_t>(bytes, 0));
  };
  return static_cast<std::int64_t>(bytes_of_tapes(tapes, sizes, at_least_none(enough), at_least_none(most)));
}

/// Bytes of the slab of tapes of the stage that has the largest, each with what Outline::fewer_tapes says;
/// `enough` or fewer: it could be smaller; `most` or more: one stage has as many. `largest_at`: the stage to
/// begin with; the one that was found.
std::int64_t largest_slab(const Order& order, const Outline& outline, std::int64_t enough, std::int64_t most,
                          int& largest_at) {
  std::int64_t largest = 0;
  const int first = largest_at;
  for (int place = 0; place < outline.stages && largest < most; ++place) {
    const int stage = place == 0 ? first : place <= first ? place - 1 : place;
    const std::int64_t fewer = outline.fewer_tapes_of(stage);
    const std::int64_t bytes =
        fewer + slab_of(order[stage], outline, std::max(largest, enough) - fewer, most - fewer);
    if (bytes > largest) largest_at = stage;
    largest = std::max(largest, bytes);
  }
  return largest;
}

/// Passes that are looked at to find a rule for each stage.
constexpr std::int64_t passes_for_rule = 1'000'000;

/// A rule, and the nanoseconds of a step by it.
struct TimedRule {
  WeightRule rule;
  std::int64_t step = std::numeric_limits<std::int64_t>::max();
};

/// A rule for each stage, from one for all that keeps its limit on: one stage's is changed after another's
/// while the step gets shorter by the inner clock.
TimedRule by_stages(OrderRuns& runs, WeightRule rule) {
  const PassClock::Run for_all = runs.run(rule);
  if (for_all.step < 0 || for_all.most_tapes > rule.most_tapes) return {};
  std::int64_t step = for_all.step, tries = passes_for_rule / (runs.passes() + 1);
  std::vector<PercentsAlike> alike = runs.alike();
  rule.percents.assign(alike.size(), 25 * rule.quarters);
  for (bool improved = true; improved;) {
    improved = false;
    for (std::size_t stage = 0; stage < alike.size(); ++stage)
      for (const int percent : {200, 100, 75, 50, 25, 10, 1}) {
        int& of_stage = rule.percents[stage];
        if (percent == of_stage || tries-- <= 0 || alike[stage].has(percent)) continue;
        const int before = std::exchange(of_stage, percent);
        const PassClock::Run run = runs.run(rule, PassClock::Tells::times, step - 1);
        if (run.step >= step || run.most_tapes > rule.most_tapes) {
          of_stage = before;
          continue;
        }
        step = run.step;
        alike = runs.alike();
        improved = true;
      }
  }
  return {std::move(rule), step};
}

}  // namespace

std::int64_t largest_slab_alone(const Order& order, const Outline& outline) {
  std::int64_t largest = 0;
  for (const std::vector<Pass>& passes : order)
    largest = std::max(largest, slab_of(passes, outline, largest));
  return largest;
}

OrderInSlab in_slab(const Order& order, const Outline& outline, const PriceList& prices, std::int64_t limit,
                    Fit fit) {
  const int percents_at_once = fit == Fit::close ? 1 : 8;
  const PassClock clock(outline, prices);
  OrderRuns runs(clock, order);
  int largest_at = 0;
  const auto with_rule = [&](const WeightRule& rule, std::int64_t most) {
    OrderInSlab made{.order = with_weight_gradients(runs, rule)};
    made.step = clock.run(made.order, {.puts_off = false}).step;
    made.bytes = largest_slab(made.order, outline, limit, most, largest_at);
    return made;
  };
  OrderInSlab best;
  if (OrderInSlab whole = with_rule({.puts_off = false}, limit + 1); whole.bytes <= limit)
    best = std::move(whole);
  const auto try_rule = [&](const WeightRule& rule) {
    OrderInSlab tried = with_rule(rule, std::max(best.bytes, limit + 1));
    const bool keeps = tried.bytes <= limit;
    best.improve(std::move(tried), limit);
    return keeps;
  };
  const std::int64_t less = std::max<std::int64_t>(1, tapes_of_1f1b(outline) * percents_at_once / 100);
  const auto lower = [&](WeightRule rule) {
    std::int64_t held =
        rule.most_tapes + 1;  // with the rule before; a limit that is no lower changes nothing
    for (; rule.most_tapes > 0 && rule.most_tapes * 100 >= limit * least_percent;
         rule.most_tapes = (rule.most_tapes - 1) / less * less) {
      if (rule.most_tapes >= held) continue;
      const PassClock::Run run = runs.run(rule);
      if (run.step < 0 || (best.bytes <= limit && run.step >= best.step) || try_rule(rule)) break;
      held = run.most_tapes;
    }
  };
  if (fit == Fit::close) {
    TimedRule shortest;
    for (const int quarters : {4, 3, 2, 1})
      if (TimedRule one = by_stages(runs, {.quarters = quarters, .most_tapes = limit});
          one.step < shortest.step)
        shortest = std::move(one);
    lower(std::move(shortest.rule));
  }
  for (const int quarters : {4, 3, 2, 1}) lower({.quarters = quarters, .most_tapes = limit});
  if (best.bytes > limit) try_rule({.most_tapes = 1});  // as few as can be
  return best;
}

std::int64_t step_without_gaps(const Order& order, const Outline& outline, const PriceList& prices,
                               std::int64_t limit) {
  const PassClock clock(outline, prices);
  OrderRuns runs(clock, order);
  std::int64_t least = runs.run({.puts_off = false}).step;
  for (const int quarters : {4, 3, 2, 1})
    least = std::min(least, runs.run({.quarters = quarters, .most_tapes = limit}).step);
  return least;
}

OrderInSlab searched_in_slab(const Outline& outline, const PriceList& prices, std::int64_t limit,
                             bool is_long) {
  OrderInSlab best;
  for (const ScheduleKind row : all_kinds<ScheduleKind>())
    if (row_of(row).in_v && row != ScheduleKind::searched)
      best.improve(in_slab(make_order(row, request_of(outline)), outline, prices, limit), limit);
  const bool is_limited = outline.tapes_percent > 0 || !outline.fewer_tapes.empty();
  const auto search = [&](std::int64_t most, std::size_t rounds = 1) {
    OrderInSlab found = in_slab(search_order(outline, prices, most, rounds), outline, prices, limit);
    const bool keeps = found.bytes <= limit;
    best.improve(std::move(found), limit);
    return keeps;
  };
  constexpr std::size_t long_rounds = 12;
  for (const int percent : searched_percents) {
    if (!is_limited && percent < least_percent) break;
    const std::int64_t most = limit * percent / 100;
    if (!search(most)) continue;
    if (is_long) search(most, long_rounds);
    break;
  }
  // More room leads elsewhere, which may be worse than what is found without it.
  if (const std::int64_t own = own_tapes(outline, ScheduleKind::searched); own < limit) search(own);
  return best;
}

}  // namespace mindpipe
