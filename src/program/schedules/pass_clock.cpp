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
  return schedule == ScheduleKind::searched && outline.tapes_limit > 0 ? outline.tapes_limit
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

std::int64_t PassClock::longest_work() const {
  std::vector<std::int64_t> work(stages_, 0);
  for (const ChunkPasses& chunk : chunks_)
    work[chunk.stage] += micro_batches_ * (chunk.forward + std::min(chunk.whole, chunk.input + chunk.weight));
  return *std::max_element(work.begin(), work.end());
}

/// The stages of one run: how far each has come in its passes, and what it holds.
class PassClock::Stages {
 public:
  Stages(const PassClock& clock, const Order& order, const WeightRule& rule, bool writes,
         std::int64_t longest)
      : clock_(clock),
        order_(order),
        rule_(rule),
        writes_(writes),
        longest_(longest),
        stages_(clock.stages_),
        ends_(2 * clock.chunks_.size() * clock.micro_batches_, never),
        begun_(ends_.size()) {
    for (int stage = 0; stage < clock.stages_; ++stage) stages_[stage].held = clock.held_[stage];
    for (const ChunkPasses& chunk : clock.chunks_)
      stages_[chunk.stage].left += clock.micro_batches_ * (chunk.forward + chunk.input + chunk.weight);
    if (writes) run_.order.resize(clock.stages_);
  }

  Run run() {
    std::vector<int> may_go_on;
    for (int stage = clock_.stages_; stage-- > 0;) may_go_on.push_back(stage);
    while (!may_go_on.empty()) {
      const int stage = may_go_on.back();
      may_go_on.pop_back();
      while (begin_next(stage, may_go_on)) {
        if (longest_ == no_limit || !is_beyond(stages_[stage])) continue;
        run_.step = std::max(longest_, stages_[stage].free + stages_[stage].left - 1) + 1;
        return std::move(run_);
      }
    }
    for (int stage = 0; stage < clock_.stages_; ++stage) {
      Stage& here = stages_[stage];
      if (here.next < order_[stage].size()) run_.step = -1;
      run_.most_tapes = std::max(run_.most_tapes, here.most);
      run_.beyond += std::max<std::int64_t>(0, here.most - rule_.most_tapes);
      while (!here.put_off.empty()) run_weights(stage);
      if (run_.step >= 0 && here.free > run_.step) {
        run_.step = here.free;
        last_ = stage;
      }
    }
    if (run_.step > 0 && rule_.puts_off && !writes_) follow_back();
    return std::move(run_);
  }

 private:
  static constexpr std::int64_t never = -1;
  struct Stage {
    std::size_t next = 0;                     ///< pass
    std::int64_t free = 0;                    ///< when the stage is free
    std::int64_t left = 0;                    ///< nanoseconds of passes in halves that have yet to begin
    std::int64_t held = 0, most = 0;          ///< bytes of tapes
    std::deque<std::pair<int, int>> put_off;  ///< chunk and micro-batch of weight gradients, the oldest first
  };

  /// A pass that has begun.
  struct Begun {
    int place = 0;        ///< in its stage's order
    bool waited = false;  ///< for what it reads
  };

  std::size_t number_of(bool forward, int chunk, int micro_batch) const {
    return (static_cast<std::size_t>(chunk) * 2 + (forward ? 1 : 0)) * clock_.micro_batches_ + micro_batch;
  }
  std::int64_t& end_of(bool forward, int chunk, int micro_batch) {
    return ends_[number_of(forward, chunk, micro_batch)];
  }

  /// Notes which passes had to wait for each other, from the last one of the stage that ends last.
  void follow_back() {
    int stage = last_, place = static_cast<int>(order_[stage].size()) - 1;
    while (place >= 0) {
      run_.critical.push_back({stage, place});
      const Pass& pass = order_[stage][place];
      const bool forward = pass.kind == ActionKind::forward;
      const Begun& begun = begun_[number_of(forward, pass.chunk, pass.micro_batch)];
      if (!begun.waited) {
        --place;
        continue;
      }
      if (forward && pass.chunk == 0) break;
      const bool turns = !forward && pass.chunk + 1 == static_cast<int>(clock_.chunks_.size());
      const int chunk = turns ? pass.chunk : forward ? pass.chunk - 1 : pass.chunk + 1;
      stage = clock_.chunks_[chunk].stage;
      place = begun_[number_of(forward || turns, chunk, pass.micro_batch)].place;
    }
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

  bool is_beyond(const Stage& stage) const {
    return stage.free + stage.left > longest_ || stage.held > rule_.most_tapes;
  }

  void run_weights(int stage) {
    Stage& here = stages_[stage];
    const auto [chunk, micro_batch] = here.put_off.front();
    here.put_off.pop_front();
    here.free += clock_.chunks_[chunk].weight;
    here.left -= clock_.chunks_[chunk].weight;
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
    const int percent = rule_.percent_on(stage);
    while (!here.put_off.empty() && rule_.most_tapes > 0 && here.held + more > rule_.most_tapes)
      run_weights(stage);
    while (!here.put_off.empty() &&
           100 * (input - here.free) >= percent * clock_.chunks_[here.put_off.front().first].weight &&
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
    begun_[number_of(forward, pass.chunk, pass.micro_batch)] = {static_cast<int>(here.next) - 1,
                                                                input > here.free};
    const bool is_half = rule_.puts_off || pass.kind == ActionKind::backward_input;
    here.free = std::max(here.free, input) + (forward ? chunk.forward : is_half ? chunk.input : chunk.whole);
    here.left -= forward ? chunk.forward : chunk.input;
    if (forward) here.held += chunk.saved;
    else if (rule_.puts_off) here.held += chunk.put_off;
    here.most = std::max(here.most, here.held);
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
  std::int64_t longest_;  ///< nanoseconds beyond which a run is left
  Run run_;
  int last_ = 0;  ///< the stage that ends last
  std::vector<Stage> stages_;
  std::vector<std::int64_t> ends_;  ///< when each pass ends, nanoseconds
  std::vector<Begun> begun_;        ///< passes that have begun
};

PassClock::Run PassClock::run(const Order& order, const WeightRule& rule, bool writes,
                              std::int64_t longest) const {
  return Stages(*this, order, rule, writes, longest).run();
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
