#include "program/schedules/pass_clock.h"

#include <algorithm>
#include <deque>
#include <limits>

#include "program/partition.h"

namespace mindpipe {
namespace {

constexpr std::int64_t no_limit = std::numeric_limits<std::int64_t>::max();

}  // namespace

std::int64_t tapes_of_1f1b(const Outline& outline) {
  std::vector<int> first_block = outline.first_block;
  if (outline.chunks > 1) {
    std::vector<std::int64_t> costs;
    for (int block = 0; block < outline.all_blocks(); ++block) costs.push_back(outline.cost(block).passes());
    first_block = balanced_cuts(costs, outline.stages);
  }
  std::int64_t most = 0;
  for (int stage = 0; stage < outline.stages; ++stage) {
    std::int64_t tape = 0;
    for (int block = first_block[stage]; block < first_block[stage + 1]; ++block)
      tape += outline.cost(block).saved - outline.cost(block).split_only;
    most = std::max(most, tape * std::min(outline.micro_batches, outline.stages - stage));
  }
  return most;
}

std::int64_t tapes_asked(const Outline& outline) {
  return outline.tapes_percent > 0 ? tapes_of_1f1b(outline) * outline.tapes_percent / 100 : no_limit;
}

std::int64_t own_tapes(const Outline& outline, ScheduleKind schedule) {
  const ScheduleRow& row = row_of(schedule);
  const std::int64_t of_1f1b = tapes_of_1f1b(outline);
  const std::int64_t in_flight = std::min(outline.micro_batches, outline.stages);
  return of_1f1b * row.tapes / 100 + row.more_tapes * of_1f1b / in_flight;
}

std::int64_t most_tapes(const Outline& outline, ScheduleKind schedule) {
  if (!row_of(schedule).splits_backward) return 0;
  if (outline.tapes_percent > 0) return tapes_asked(outline);
  return schedule == ScheduleKind::searched && outline.tapes_room > 0 ? outline.tapes_room
                                                                      : own_tapes(outline, schedule);
}

PassClock::PassClock(const Outline& outline, const PriceList& prices)
    : chunks_(outline.all_chunks()),
      stages_(outline.stages),
      micro_batches_(outline.micro_batches),
      of_shard_(outline.micro_batches_of_shard()) {
  for (int stage = 0; stage < stages_; ++stage) held_.push_back(outline.fewer_tapes_of(stage));
  for (int number = 0; number < outline.all_chunks(); ++number) {
    ChunkPasses& chunk = chunks_[number];
    chunk.stage = outline.rank_of(number);
    const int first = outline.first_block[number], last = outline.first_block[number + 1];
    const auto lasts = [&](ActionKind kind) {
      return prices.pass(chunk.stage, prices.work_of(traits_of_pass(kind), first, last, false), false).lasts;
    };
    chunk.forward = lasts(ActionKind::forward);
    chunk.whole = lasts(ActionKind::backward);
    chunk.input = lasts(ActionKind::backward_input);
    chunk.weight = lasts(ActionKind::backward_weight);
    for (int block = first; block < last; ++block) {
      chunk.saved += outline.cost(block).saved;
      chunk.put_off += outline.cost(block).put_off;
    }
    const auto message = [&](int other, int cut, bool forward) {
      const int there = outline.rank_of(other);
      if (there == chunk.stage) return std::int64_t{0};
      return prices.message(chunk.stage, there, outline.cuts[cut], forward).lasts;
    };
    if (number + 1 < outline.all_chunks()) chunk.up = message(number + 1, last, true);
    if (number > 0) chunk.down = message(number - 1, first, false);
  }
}

/// The stages of one run: how far each has come in its passes, and what it holds.
class PassClock::Stages {
 public:
  Stages(const PassClock& clock, const Order& order, const WeightRule& rule, bool writes)
      : clock_(clock),
        order_(order),
        rule_(rule),
        writes_(writes),
        stages_(clock.stages_),
        ends_(2 * clock.chunks_.size() * clock.micro_batches_, never) {
    for (int stage = 0; stage < clock.stages_; ++stage) stages_[stage].held = clock.held_[stage];
    if (writes) run_.order.resize(clock.stages_);
  }

  Run run() {
    std::vector<int> may_go_on;
    for (int stage = clock_.stages_; stage-- > 0;) may_go_on.push_back(stage);
    while (!may_go_on.empty()) {
      const int stage = may_go_on.back();
      may_go_on.pop_back();
      while (begin_next(stage, may_go_on)) continue;
    }
    for (int stage = 0; stage < clock_.stages_; ++stage) {
      Stage& here = stages_[stage];
      if (here.next < order_[stage].size()) run_.step = -1;
      while (!here.put_off.empty()) run_weights(stage);
      if (run_.step >= 0) run_.step = std::max(run_.step, here.free);
    }
    return std::move(run_);
  }

 private:
  static constexpr std::int64_t never = -1;
  struct Stage {
    std::size_t next = 0;                     ///< pass
    std::int64_t free = 0, held = 0;          ///< when the stage is free; bytes of tapes
    std::deque<std::pair<int, int>> put_off;  ///< chunk and micro-batch of weight gradients, the oldest first
  };

  std::int64_t& end_of(bool forward, int chunk, int micro_batch) {
    return ends_[(static_cast<std::size_t>(chunk) * 2 + (forward ? 1 : 0)) * clock_.micro_batches_ +
                 micro_batch];
  }

  /// When what a pass reads is there; never: it is not known yet.
  std::int64_t input_of(const Pass& pass) {
    const int last = static_cast<int>(clock_.chunks_.size()) - 1;
    const auto arrives = [&](bool forward, int from, std::int64_t message) {
      const std::int64_t end = end_of(forward, from, pass.micro_batch);
      return end == never ? never : end + message;
    };
    if (pass.kind == ActionKind::forward)
      return pass.chunk == 0 ? 0 : arrives(true, pass.chunk - 1, clock_.chunks_[pass.chunk - 1].up);
    const std::int64_t forward = end_of(true, pass.chunk, pass.micro_batch);
    if (forward == never || pass.chunk == last) return forward;
    return arrives(false, pass.chunk + 1, clock_.chunks_[pass.chunk + 1].down);
  }

  void run_weights(int stage) {
    Stage& here = stages_[stage];
    const auto [chunk, micro_batch] = here.put_off.front();
    here.put_off.pop_front();
    here.free += clock_.chunks_[chunk].weight;
    here.held -= clock_.chunks_[chunk].saved + clock_.chunks_[chunk].put_off;
    if (writes_) run_.order[stage].push_back({ActionKind::backward_weight, chunk, micro_batch});
  }

  /// Weight gradients of the shard before, which a chunk's first backward of a shard comes behind; those that
  /// have to make room; those that fit into the gap before the pass.
  void make_room(int stage, const Pass& pass, std::int64_t input) {
    Stage& here = stages_[stage];
    const ChunkPasses& chunk = clock_.chunks_[pass.chunk];
    const bool forward = pass.kind == ActionKind::forward;
    const auto is_of_chunk = [&](const auto& one) { return one.first == pass.chunk; };
    if (!forward && pass.micro_batch % clock_.of_shard_ == 0)
      while (std::any_of(here.put_off.begin(), here.put_off.end(), is_of_chunk)) run_weights(stage);
    const std::int64_t more = forward ? chunk.saved : chunk.put_off;
    while (!here.put_off.empty() && rule_.most_tapes > 0 && here.held + more > rule_.most_tapes)
      run_weights(stage);
    while (!here.put_off.empty() &&
           4 * (input - here.free) >= rule_.quarters * clock_.chunks_[here.put_off.front().first].weight &&
           input > here.free)
      run_weights(stage);
  }

  bool begin_next(int stage, std::vector<int>& may_go_on) {
    Stage& here = stages_[stage];
    if (here.next == order_[stage].size()) return false;
    const Pass& pass = order_[stage][here.next];
    if (pass.kind == ActionKind::backward_weight) {
      ++here.next;
      here.free += clock_.chunks_[pass.chunk].weight;
      return true;
    }
    const std::int64_t input = input_of(pass);
    if (input == never) return false;
    ++here.next;
    const ChunkPasses& chunk = clock_.chunks_[pass.chunk];
    const bool forward = pass.kind == ActionKind::forward;
    make_room(stage, pass, input);
    const bool is_half = rule_.puts_off || pass.kind == ActionKind::backward_input;
    here.free = std::max(here.free, input) + (forward ? chunk.forward : is_half ? chunk.input : chunk.whole);
    if (forward) here.held += chunk.saved;
    else if (rule_.puts_off) here.held += chunk.put_off;
    run_.most_tapes = std::max(run_.most_tapes, here.held);
    if (!forward && rule_.puts_off) here.put_off.emplace_back(pass.chunk, pass.micro_batch);
    else if (!forward) here.held -= chunk.saved;
    if (writes_)
      run_.order[stage].push_back({forward || !rule_.puts_off ? pass.kind : ActionKind::backward_input,
                                   pass.chunk, pass.micro_batch});
    end_of(forward, pass.chunk, pass.micro_batch) = here.free;
    const int reader = pass.chunk + (forward ? 1 : -1);
    if (reader >= 0 && reader < static_cast<int>(clock_.chunks_.size()) &&
        clock_.chunks_[reader].stage != stage)
      may_go_on.push_back(clock_.chunks_[reader].stage);
    return true;
  }

  const PassClock& clock_;
  const Order& order_;
  const WeightRule& rule_;
  bool writes_;
  Run run_;
  std::vector<Stage> stages_;
  std::vector<std::int64_t> ends_;  ///< when each pass ends, nanoseconds
};

PassClock::Run PassClock::run(const Order& order, const WeightRule& rule, bool writes) const {
  return Stages(*this, order, rule, writes).run();
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

Order with_weight_gradients(const Order& order, const PassClock& clock, const WeightRule& rule) {
  Order written = clock.run(order, rule, true).order;
  for (std::vector<Pass>& passes : written) join_halves(passes);
  return written;
}

}  // namespace mindpipe
