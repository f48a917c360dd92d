#include "program/schedules/order_search.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <random>
#include <utility>

#include "program/make_program.h"
#include "program/schedules/order_runs.h"
#include "program/schedules/soonest_order.h"

namespace mindpipe {
namespace {

/// Orders that are improved; tries of each, in each round as many as look at so many passes together.
constexpr std::size_t most_starts = 3;
constexpr std::size_t passes_looked_at = 1'200'000, least_tries = 2000, most_tries = 8000;
/// Three tries in four move a pass that decides when the step ends.
constexpr std::size_t deciding = 3, of_tries = 4;
/// How far a try moves a pass: a short way most of the time.
constexpr unsigned short_way = 3, long_way = 12, one_in_is_long = 4;
/// Micro-batches under way on a stage are tried from the number of stages on, in sixths of it.
constexpr int sixths[] = {6, 7, 8, 9, 10, 11};

constexpr std::int64_t too_large = std::numeric_limits<std::int64_t>::max();

/// Whether two passes of a stage may change places: those of one micro-batch wait for each other, and
/// micro-batches of one chunk keep their order.
bool may_change_places(const Pass& a, const Pass& b) {
  return a.micro_batch != b.micro_batch && (a.chunk != b.chunk || a.kind != b.kind);
}

/// Where a move of a stage's pass began and ended.
struct Moved {
  int stage = 0, from = 0, to = 0;
  Moved back() const { return {stage, to, from}; }
};

void carry_out(const Moved& moved, Order& order, OrderRuns& runs) {
  const auto passes = order[moved.stage].begin();
  const auto [from, to] = std::pair(passes + moved.from, passes + moved.to);
  if (from < to) std::rotate(from, from + 1, to + 1);
  else std::rotate(to, from, from + 1);
  runs.move(moved.stage, moved.from, moved.to);
}

/// The move of a pass from its place so many places earlier or later, as far as it may change places.
Moved move_from(int place, const std::vector<Pass>& passes, int stage, int way, bool later) {
  Moved moved{stage, place, place};
  const int end = later ? static_cast<int>(passes.size()) - 1 : 0, step = later ? 1 : -1;
  while (way-- > 0 && moved.to != end && may_change_places(passes[place], passes[moved.to + step]))
    moved.to += step;
  return moved;
}

/// An order, and the rule of its weight gradients.
struct Found {
  Order order;
  int quarters = 4;
  std::int64_t step = too_large;      ///< nanoseconds, where the limit is kept
  std::int64_t tapes = 0;             ///< bytes
  std::vector<PlaceOfPass> critical;  ///< passes that decide when it ends
};

bool is_better(const Found& a, const Found& b) {
  return std::pair(a.step, a.tapes) < std::pair(b.step, b.tapes);
}

class OrderSearch {
 public:
  OrderSearch(const PassClock& clock, std::int64_t most_tapes, std::size_t rounds)
      : clock_(clock), most_tapes_(most_tapes), rounds_(rounds) {}

  /// Takes an order among those to improve if it is one of the best few, with the best of these rules
  /// of weight gradients.
  void begin_with(Order order, std::initializer_list<int> quarters) {
    Found best;
    if (order.empty()) return;
    OrderRuns runs(clock_, order);
    for (const int rule : quarters) {
      Found one{.quarters = rule};
      if (!time(runs, one)) return;  // it stands still
      if (rule == *quarters.begin() || is_better(one, best)) best = one;
    }
    if (found_.size() == most_starts && !is_better(best, found_.back())) return;
    best.order = std::move(order);
    found_.insert(std::upper_bound(found_.begin(), found_.end(), best, is_better), std::move(best));
    if (found_.size() > most_starts) found_.pop_back();
  }

  /// The best order, once the best few were improved.
  Order best() {
    for (Found& one : found_)
      if (one.step != too_large) improve(one);
    return std::move(std::min_element(found_.begin(), found_.end(), is_better)->order);
  }

 private:
  WeightRule rule_of(const Found& one) const { return {.quarters = one.quarters, .most_tapes = most_tapes_}; }

  /// Notes what a run was like; whether its order goes on to its end, or beyond what it may last.
  bool note(PassClock::Run run, Found& one) const {
    one.step = run.most_tapes > most_tapes_ ? too_large : run.step;
    one.tapes = run.most_tapes;
    one.critical = std::move(run.critical);
    return run.step >= 0;
  }
  bool time(OrderRuns& runs, Found& one) const {
    return note(runs.run(rule_of(one), PassClock::Tells::critical), one);
  }

  /// Finds the rule of an order's weight gradients; then moves one pass after another, within its stage or on
  /// some stages that follow each other, and keeps what makes the step no longer.
  void improve(Found& one) const {
    OrderRuns runs(clock_, one.order);
    for (const int quarters : {4, 3, 2, 1}) {
      Found other{.quarters = quarters};
      time(runs, other);
      if (other.step >= one.step) continue;
      one.quarters = quarters;
      one.step = other.step;
      one.tapes = other.tapes;
    }
    std::size_t passes_of_all = 0;
    for (const std::vector<Pass>& passes : one.order) passes_of_all += passes.size();
    const std::size_t tries = rounds_ * std::clamp(passes_looked_at / passes_of_all, least_tries, most_tries);
    std::minstd_rand random(1);
    const auto below = [&](std::size_t end) { return static_cast<std::size_t>(random()) % end; };
    Found tried{.quarters = one.quarters};
    time(runs, one);
    runs.keep();
    std::vector<Moved> moves;
    const std::size_t stages = one.order.size();
    for (std::size_t k = 0; k < tries; ++k) {
      const bool decides = below(of_tries) < deciding && !one.critical.empty();
      const PlaceOfPass chosen = decides ? one.critical[below(one.critical.size())] : PlaceOfPass{};
      const std::size_t first = decides ? chosen.stage : below(stages),
                        last = below(2) == 0 ? first : std::min(stages - 1, first + 1 + below(stages - 1));
      const Pass pass = one.order[first][decides ? chosen.place : below(one.order[first].size())];
      const int way = static_cast<int>(1 + below(below(one_in_is_long) == 0 ? long_way : short_way));
      const bool later = below(2) == 0;
      moves.clear();
      for (std::size_t stage = first; stage <= last; ++stage) {
        const int chunk =
            static_cast<int>(pass.chunk == static_cast<int>(first) ? stage : 2 * stages - 1 - stage);
        const int place = runs.place_of({pass.kind, chunk, pass.micro_batch});
        const Moved moved = move_from(place, one.order[stage], static_cast<int>(stage), way, later);
        if (moved.to != place) moves.push_back(moved);
      }
      if (moves.empty()) continue;
      for (const Moved& moved : moves) carry_out(moved, one.order, runs);
      if (note(runs.run_again(rule_of(one), one.step), tried) && tried.step <= one.step) {
        runs.keep();
        one.step = tried.step;
        one.tapes = tried.tapes;
        one.critical = std::move(tried.critical);
      } else {
        for (const Moved& moved : moves) carry_out(moved.back(), one.order, runs);
        runs.forget_moves();
      }
    }
  }

  const PassClock& clock_;
  std::int64_t most_tapes_;
  std::size_t rounds_;
  std::vector<Found> found_;
};

}  // namespace

Order search_order(const Outline& outline, const PriceList& prices, std::int64_t most_tapes,
                   std::size_t rounds) {
  const PassClock clock(outline, prices);
  OrderSearch search(clock, most_tapes, rounds);
  const OrderRequest request = request_of(outline);
  for (const ScheduleKind kind : all_kinds<ScheduleKind>())
    if (row_of(kind).in_v && kind != ScheduleKind::searched)
      search.begin_with(make_order(kind, request), {4, 3, 2, 1});
  for (const VPattern& pattern : all_patterns()) search.begin_with(order_in_v(request, pattern), {4});
  for (const int part : sixths)
    for (const bool forwards_first : {false, true})
      search.begin_with(soonest_order(clock, {.ahead = std::max(1, outline.stages * part / 6),
                                              .forwards_first = forwards_first,
                                              .most_tapes = most_tapes}),
                        {4});
  return search.best();
}

}  // namespace mindpipe
