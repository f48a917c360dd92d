#include "program/schedules/pass_clock.h"

#include <algorithm>
#include <limits>

#include "program/partition.h"
#include "program/schedules/order_runs.h"

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

PassClock::Run PassClock::run(const Order& order, const WeightRule& rule, Tells tells,
                              std::int64_t longest) const {
  return OrderRuns(*this, order).run(rule, tells, longest);
}

}  // namespace mindpipe
