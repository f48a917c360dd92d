#include "program/schedules/order_runs.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace mindpipe {
namespace {

constexpr std::int64_t never = -1;

/// Which mark says how a stage stood before a step, or at its end.
std::size_t mark_of(int stage, int step) { return static_cast<std::size_t>(step) + stage; }

}  // namespace

OrderRuns::OrderRuns(const PassClock& clock, const Order& order)
    : clock_(clock), order_(order), stages_(order.size()), waiting_(clock.chunks().size()) {
  const std::size_t passes = 2 * clock.chunks().size() * clock.micro_batches();
  places_.resize(first_of_passes + passes);
  trail_.ends.resize(places_.size());
  trail_.waited.resize(places_.size());
  std::vector<char> seen(places_.size(), 0);  // forwards that a stage's order has before
  std::size_t all = 0;
  for (const std::vector<Pass>& of_stage : order) all += of_stage.size();
  steps_.reserve(all);
  trail_.put_off.resize(all);
  marks_.resize(all + order.size());
  kept_marks_.resize(marks_.size());
  resumed_.resize(order.size());
  forget_moves();
  for (std::size_t stage = 0; stage < order.size(); ++stage) {
    stages_[stage].begin = static_cast<int>(steps_.size());
    prepare(static_cast<int>(stage), order[stage], seen);
    stages_[stage].end = static_cast<int>(steps_.size());
  }
}

int OrderRuns::number_of(bool forward, const Pass& pass) const {
  return first_of_passes + (2 * pass.chunk + (forward ? 1 : 0)) * clock_.micro_batches() + pass.micro_batch;
}

void OrderRuns::prepare(int stage, const std::vector<Pass>& passes, std::vector<char>& seen) {
  const std::vector<ChunkPasses>& chunks = clock_.chunks();
  const int last = static_cast<int>(chunks.size()) - 1;
  for (const Pass& pass : passes) {
    Step& step = steps_.emplace_back(Step{.pass = pass});
    if (pass.kind == ActionKind::backward_weight) continue;
    const bool forward = pass.kind == ActionKind::forward;
    const int reader = pass.chunk + (forward ? 1 : -1), giver = pass.chunk - (forward ? 1 : -1);
    step.own = number_of(forward, pass);
    places_[step.own] = static_cast<int>(steps_.size()) - 1 - stages_[stage].begin;
    if (reader >= 0 && reader <= last && chunks[reader].stage != stage) step.reader = chunks[reader].stage;
    const Pass given{pass.kind, giver, pass.micro_batch};
    const int of_forward = number_of(true, pass);
    if (forward) {
      seen[of_forward] = 1;
      if (giver >= 0)
        std::tie(step.input, step.message) = std::pair(number_of(true, given), chunks[giver].up);
      continue;
    }
    step.begins_shard = pass.micro_batch % clock_.of_shard() == 0;
    if (seen[of_forward] == 0) step.input = nowhere;
    else if (giver > last) step.input = of_forward;
    else std::tie(step.input, step.message) = std::pair(number_of(false, given), chunks[giver].down);
  }
}

void OrderRuns::move(int stage, int from, int to) {
  const auto first = steps_.begin() + stages_[stage].begin;
  if (from < to) std::rotate(first + from, first + from + 1, first + to + 1);
  else std::rotate(first + to, first + from, first + from + 1);
  for (int place = std::min(from, to); place <= std::max(from, to); ++place)
    places_[first[place].own] = place;
  first_moved_[stage] = std::min({first_moved_[stage], from, to});
}

void OrderRuns::forget_moves() { first_moved_.assign(stages_.size(), std::numeric_limits<int>::max()); }

void OrderRuns::keep() {
  kept_ = trail_;
  for (int number = 0; number < static_cast<int>(stages_.size()); ++number) {
    const auto first = marks_.begin() + mark_of(number, 0);
    std::copy(first + resumed_[number], first + stages_[number].end + 1,
              kept_marks_.begin() + mark_of(number, resumed_[number]));
  }
  forget_moves();
}

PassClock::Run OrderRuns::run(const WeightRule& rule, PassClock::Tells tells, std::int64_t longest) {
  rule_ = &rule;
  tells_ = tells;
  begin();
  return run_to_end(longest);
}

PassClock::Run OrderRuns::run_again(const WeightRule& rule, std::int64_t longest) {
  rule_ = &rule;
  tells_ = PassClock::Tells::critical;
  begin_again();
  return run_to_end(longest);
}

PassClock::Run OrderRuns::run_to_end(std::int64_t longest) {
  longest_ = longest;
  run_ = {};
  is_left_ = false;
  last_ = 0;
  may_go_on_.clear();
  for (int number = static_cast<int>(stages_.size()); number-- > 0;) {
    may_go_on_.push_back(number);
    resumed_[number] = stages_[number].next;
  }
  if (tells_ == PassClock::Tells::order) run_.order.resize(stages_.size());
  while (!may_go_on_.empty() && !is_left_) {
    const int stage = may_go_on_.back();
    may_go_on_.pop_back();
    go_on(stage);
  }
  if (!is_left_) end();
  return std::move(run_);
}

void OrderRuns::begin() {
  std::fill(trail_.ends.begin(), trail_.ends.end(), never);
  trail_.ends[there] = 0;
  std::fill(waiting_.begin(), waiting_.end(), 0);
  alike_.assign(stages_.size(), {});
  for (int number = 0; number < static_cast<int>(stages_.size()); ++number) {
    Stage& stage = stages_[number];
    stage = {.begin = stage.begin, .next = stage.begin, .end = stage.end, .held = clock_.held()[number]};
    stage.oldest = stage.newest = stage.begin;
  }
  for (const ChunkPasses& chunk : clock_.chunks())
    stages_[chunk.stage].left += clock_.micro_batches() * (chunk.forward + chunk.input + chunk.weight);
}

/// Until the first stage comes to a pass that was moved, nobody can know of it: passes that end before then
/// end so again, and stages that have read nothing else stand where they stood.
void OrderRuns::begin_again() {
  trail_ = kept_;
  waiting_.assign(waiting_.size(), 0);
  std::int64_t first_known = PassClock::any_length;
  for (int number = 0; number < static_cast<int>(stages_.size()); ++number)
    if (const Stage& stage = stages_[number]; first_moved_[number] < stage.end - stage.begin)
      first_known =
          std::min(first_known, kept_marks_[mark_of(number, stage.begin + first_moved_[number])].free);
  for (int number = 0; number < static_cast<int>(stages_.size()); ++number) {
    Stage& stage = stages_[number];
    const auto first = kept_marks_.begin() + mark_of(number, stage.begin),
               last = first + (stage.end - stage.begin);
    const auto knows =
        std::partition_point(first, last, [&](const Stage& at) { return at.latest < first_known; });
    stage = first[std::min(first_moved_[number], static_cast<int>(knows - first))];
    for (int step = stage.next; step < stage.end; ++step) trail_.ends[steps_[step].own] = never;
    for (int at = stage.oldest; at < stage.newest; ++at) ++waiting_[steps_[trail_.put_off[at]].pass.chunk];
  }
  trail_.ends[there] = 0;
}

/// Begins the passes of a stage up to the first whose input is not known yet.
void OrderRuns::go_on(int number) {
  Stage& stage = stages_[number];
  while (stage.next < stage.end) {
    const Step& step = steps_[stage.next];
    const ChunkPasses& chunk = clock_.chunks()[step.pass.chunk];
    const std::int64_t end_of_input = trail_.ends[step.input];
    if (end_of_input == never) {
      stage.waits_for = step.input;
      return;
    }
    stage.latest = std::max(stage.latest, end_of_input);
    if (tells_ == PassClock::Tells::critical) marks_[mark_of(number, stage.next)] = stage;
    if (step.pass.kind == ActionKind::backward_weight) {
      ++stage.next;
      stage.free += chunk.weight;
      continue;
    }
    const std::int64_t input = end_of_input + step.message;
    const bool forward = step.pass.kind == ActionKind::forward, puts_off = rule_->puts_off;
    if (stage.oldest < stage.newest) make_room(number, step, input);
    trail_.waited[step.own] = input > stage.free;
    const bool is_half = puts_off || step.pass.kind == ActionKind::backward_input;
    stage.free = std::max(stage.free, input) + (forward   ? chunk.forward
                                                : is_half ? chunk.input
                                                          : chunk.whole);
    stage.left -= forward ? chunk.forward : chunk.input;
    stage.held += forward ? chunk.saved : puts_off ? chunk.put_off : -chunk.saved;
    stage.most = std::max(stage.most, stage.held);
    if (!forward && puts_off) {
      trail_.put_off[stage.newest++] = stage.next;
      ++waiting_[step.pass.chunk];
    }
    if (tells_ == PassClock::Tells::order)
      run_.order[number].push_back({forward || !puts_off ? step.pass.kind : ActionKind::backward_input,
                                    step.pass.chunk, step.pass.micro_batch});
    trail_.ends[step.own] = stage.free;
    ++stage.next;
    if (step.reader >= 0 && stages_[step.reader].waits_for == step.own) may_go_on_.push_back(step.reader);
    if (longest_ == PassClock::any_length ||
        (stage.free + stage.left <= longest_ && stage.held <= rule_->most_tapes))
      continue;
    is_left_ = true;
    run_.step = std::max(longest_, stage.free + stage.left - 1) + 1;
    return;
  }
  marks_[mark_of(number, stage.end)] = stage;
}

/// Runs the weight gradients of the shard before, which a chunk's first backward of a shard comes behind;
/// those that have to make room; those that fit into the gap before a pass.
void OrderRuns::make_room(int number, const Step& step, std::int64_t input) {
  Stage& stage = stages_[number];
  const bool forward = step.pass.kind == ActionKind::forward;
  const ChunkPasses& chunk = clock_.chunks()[step.pass.chunk];
  while (step.begins_shard && waiting_[step.pass.chunk] > 0) run_weights(number);
  const std::int64_t more = forward ? chunk.saved : chunk.put_off;
  while (stage.oldest < stage.newest && rule_->most_tapes > 0 && stage.held + more > rule_->most_tapes)
    run_weights(number);
  while (stage.oldest < stage.newest && fills(number, input - stage.free)) run_weights(number);
}

/// Whether the next weight gradient of a stage is run in a gap.
bool OrderRuns::fills(int number, std::int64_t gap) {
  if (gap <= 0) return false;
  const Stage& stage = stages_[number];
  const std::int64_t weight = clock_.chunks()[steps_[trail_.put_off[stage.oldest]].pass.chunk].weight;
  if (weight == 0) return true;
  const std::int64_t percent = rule_->percent_on(number);
  const bool fills = percent * weight <= 100 * gap;
  if (tells_ == PassClock::Tells::critical) return fills;  // and nobody asks for other percents
  const std::int64_t most_percent = 100 * gap / weight;
  PercentsAlike& alike = alike_[number];
  if (fills) alike.most = std::min(alike.most, most_percent);
  else alike.least = std::max(alike.least, most_percent + 1);
  return fills;
}

void OrderRuns::run_weights(int number) {
  Stage& stage = stages_[number];
  const Pass& pass = steps_[trail_.put_off[stage.oldest++]].pass;
  const ChunkPasses& chunk = clock_.chunks()[pass.chunk];
  --waiting_[pass.chunk];
  stage.free += chunk.weight;
  stage.left -= chunk.weight;
  stage.held -= chunk.saved + chunk.put_off;
  if (tells_ == PassClock::Tells::order)
    run_.order[number].push_back({ActionKind::backward_weight, pass.chunk, pass.micro_batch});
}

void OrderRuns::end() {
  for (int number = 0; number < static_cast<int>(stages_.size()); ++number) {
    Stage& stage = stages_[number];
    if (stage.next < stage.end) run_.step = -1;
    run_.most_tapes = std::max(run_.most_tapes, stage.most);
    run_.beyond += std::max<std::int64_t>(0, stage.most - rule_->most_tapes);
    while (stage.oldest < stage.newest) run_weights(number);
    if (run_.step >= 0 && stage.free > run_.step) {
      run_.step = stage.free;
      last_ = number;
    }
  }
  if (run_.step > 0 && rule_->puts_off && tells_ == PassClock::Tells::critical) follow_back();
}

/// Notes which passes had to wait for each other, from the last one of the stage that ends last.
void OrderRuns::follow_back() {
  int number = last_, place = static_cast<int>(order_[number].size()) - 1;
  while (place >= 0) {
    run_.critical.push_back({number, place});
    const Pass& pass = order_[number][place];
    const bool forward = pass.kind == ActionKind::forward;
    if (trail_.waited[number_of(forward, pass)] == 0) {
      --place;
      continue;
    }
    if (forward && pass.chunk == 0) break;
    const bool turns = !forward && pass.chunk + 1 == static_cast<int>(clock_.chunks().size());
    const int chunk = turns ? pass.chunk : forward ? pass.chunk - 1 : pass.chunk + 1;
    number = clock_.chunks()[chunk].stage;
    place = places_[number_of(forward || turns, {pass.kind, chunk, pass.micro_batch})];
  }
}

namespace {

/// Makes a whole backward of two halves of the first chunk that follow each other: nobody waits for the
/// gradient of what enters it.
void join_halves(std::vector<Pass>& passes) {
  std::vector<Pass> joined;
  for (const Pass& pass : passes) {
    const Pass input{ActionKind::backward_input, pass.chunk, pass.micro_batch};
    const bool follows = pass.kind == ActionKind::backward_weight && pass.chunk == 0 && !joined.empty() &&
                         joined.back() == input;
    if (follows) joined.back().kind = ActionKind::backward;
    else joined.push_back(pass);
  }
  passes = std::move(joined);
}

}  // namespace

Order with_weight_gradients(OrderRuns& runs, const WeightRule& rule) {
  Order written = runs.run(rule, PassClock::Tells::order).order;
  for (std::vector<Pass>& passes : written) join_halves(passes);
  return written;
}

Order with_weight_gradients(const Order& order, const PassClock& clock, const WeightRule& rule) {
  OrderRuns runs(clock, order);
  return with_weight_gradients(runs, rule);
}

}  // namespace mindpipe
