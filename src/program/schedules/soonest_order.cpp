#include "program/schedules/soonest_order.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

namespace mindpipe {
namespace {

class Soonest {
 public:
  Soonest(const PassClock& clock, const SoonestRule& rule)
      : chunks_(clock.chunks()),
        micro_batches_(clock.micro_batches()),
        rule_(rule),
        begun_(chunks_.size()),
        stages_(chunks_.size() / 2) {
    for (std::vector<std::int64_t>* ends : {&forward_ends_, &backward_ends_})
      ends->resize(chunks_.size() * micro_batches_);
    for (std::size_t stage = 0; stage < stages_.size(); ++stage) stages_[stage].held = clock.held()[stage];
  }

  Order write() {
    while (const std::optional<Ready> next = first_of_all()) run(*next);
    const bool is_whole = std::all_of(begun_.begin(), begun_.end(),
                                      [&](const Begun& begun) { return begun.backwards == micro_batches_; });
    Order order;
    for (Stage& stage : stages_)
      if (is_whole) order.push_back(std::move(stage.passes));
    return order;
  }

 private:
  struct Begun {
    int forwards = 0, backwards = 0;
  };
  struct Stage {
    std::int64_t free = 0, held = 0, waiting = 0;  ///< bytes of tapes, and of those whose products wait
    std::deque<int> put_off;                       ///< chunks of weight gradients, the oldest first
    std::vector<Pass> passes;
  };
  /// A pass that a stage could run next.
  struct Ready {
    int stage = 0;
    bool forward = false;
    int chunk = 0, rank = 0;  ///< the least rank comes first of those that begin at the same time
    std::int64_t begin = 0;
  };

  std::size_t place_of(int chunk, int micro_batch) const {
    return static_cast<std::size_t>(chunk) * micro_batches_ + micro_batch;
  }

  /// When what a chunk's next pass reads is there; none: nobody has made it yet.
  std::optional<std::int64_t> input_of(bool forward, int chunk) const {
    const int next = forward ? begun_[chunk].forwards : begun_[chunk].backwards;
    if (next == micro_batches_) return std::nullopt;
    if (forward) {
      if (chunk == 0) return 0;
      if (begun_[chunk - 1].forwards <= next) return std::nullopt;
      return forward_ends_[place_of(chunk - 1, next)] + chunks_[chunk - 1].up;
    }
    if (begun_[chunk].forwards <= next) return std::nullopt;
    if (chunk + 1 == static_cast<int>(chunks_.size())) return forward_ends_[place_of(chunk, next)];
    if (begun_[chunk + 1].backwards <= next) return std::nullopt;
    return backward_ends_[place_of(chunk + 1, next)] + chunks_[chunk + 1].down;
  }

  std::optional<Ready> first_of(int number) const {
    const Stage& stage = stages_[number];
    const int down = number, up = static_cast<int>(chunks_.size()) - 1 - number;
    const int under_way = begun_[down].forwards - begun_[down].backwards;
    const bool hurries = rule_.forwards_first && under_way < rule_.ahead;
    const std::int64_t least = stage.held - stage.waiting + chunks_[up].saved;
    std::optional<Ready> first;
    for (const Ready& one :
         {Ready{number, false, down, 0}, Ready{number, false, up, 1},
          Ready{number, true, up, hurries ? -2 : 2}, Ready{number, true, down, hurries ? -1 : 3}}) {
      const bool goes_down = one.forward && one.chunk == down;
      if (goes_down && under_way >= rule_.ahead) continue;
      if (one.forward && least + (goes_down ? chunks_[down].saved : 0) > rule_.most_tapes) continue;
      const std::optional<std::int64_t> input = input_of(one.forward, one.chunk);
      if (!input) continue;
      const std::int64_t begin = std::max(stage.free, *input);
      if (first && std::pair(first->begin, first->rank) <= std::pair(begin, one.rank)) continue;
      first = one;
      first->begin = begin;
    }
    return first;
  }

  std::optional<Ready> first_of_all() const {
    std::optional<Ready> first;
    for (int stage = 0; stage < static_cast<int>(stages_.size()); ++stage)
      if (const auto one = first_of(stage); one && (!first || one->begin < first->begin)) first = one;
    return first;
  }

  void run_weights(Stage& stage) {
    const ChunkPasses& chunk = chunks_[stage.put_off.front()];
    stage.put_off.pop_front();
    stage.free += chunk.weight;
    stage.held -= chunk.saved + chunk.put_off;
    stage.waiting -= chunk.saved + chunk.put_off;
  }

  void run(const Ready& next) {
    Stage& stage = stages_[next.stage];
    const ChunkPasses& chunk = chunks_[next.chunk];
    const std::int64_t more = next.forward ? chunk.saved : chunk.put_off;
    const auto is_full = [&] { return stage.held + more > rule_.most_tapes; };
    const auto is_gap = [&] { return next.begin - stage.free >= chunks_[stage.put_off.front()].weight; };
    while (!stage.put_off.empty() && (is_full() || is_gap())) run_weights(stage);
    Begun& begun = begun_[next.chunk];
    const int micro_batch = next.forward ? begun.forwards++ : begun.backwards++;
    stage.free = std::max(stage.free, next.begin) + (next.forward ? chunk.forward : chunk.input);
    (next.forward ? forward_ends_ : backward_ends_)[place_of(next.chunk, micro_batch)] = stage.free;
    stage.held += more;
    if (!next.forward) {
      stage.waiting += chunk.saved + chunk.put_off;
      stage.put_off.push_back(next.chunk);
    }
    stage.passes.push_back(
        {next.forward ? ActionKind::forward : ActionKind::backward, next.chunk, micro_batch});
  }

  const std::vector<ChunkPasses>& chunks_;
  int micro_batches_;
  SoonestRule rule_;
  std::vector<Begun> begun_;  ///< passes of each chunk
  std::vector<Stage> stages_;
  std::vector<std::int64_t> forward_ends_, backward_ends_;  ///< forwards and backwards of each chunk so far
};

}  // namespace

Order soonest_order(const PassClock& clock, const SoonestRule& rule) { return Soonest(clock, rule).write(); }

}  // namespace mindpipe
