#include "program/step_on_paper.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/check.h"
#include "program/clock/simulate.h"
#include "program/fewest.h"
#include "program/lists/write_step.h"

namespace mindpipe {
namespace {

/// Rings of two buffers at least: one is filled while the other is read.
constexpr int least_depth = 2;

/// A step may be half a percent longer than with all the rooms that it could use.
LittleLonger longer_than(std::int64_t best) { return {best, 200}; }

/// Boundary rings as shallow as the bound allows, all of a step together; then, where gradients are sharded,
/// as few sums under way beside slabs in use, which decides how many slabs there are. `unbounded`: the time
/// that the step has just taken with all the rooms that it could use.
StepRooms rooms_of_step(const Outline& outline, StepOrder& step, std::int64_t unbounded) {
  StepRooms rooms;
  const std::map<RingPair, int> held = step.most_held();
  int most = least_depth;
  for (const auto& [pair, buffers] : held) most = std::max(most, buffers);
  const auto take_rings = [&](int depth) {
    for (const auto& [pair, buffers] : held)
      rooms.rings[pair] = std::min(depth, std::max(buffers, least_depth));
  };
  take_rings(fewest(least_depth, most, Search::doubling, longer_than(unbounded), [&](int depth) {
    take_rings(depth);
    return step.run(rooms);
  }));
  if (!outline.sharded_gradients) return rooms;
  const std::int64_t bounded = step.run(rooms);
  const auto take_slabs = [&](int under_way) {
    rooms.gradients.clear();
    for (const auto& lives : step.tasks().lives)
      rooms.gradients.push_back(take_turns(lives, outline, under_way));
  };
  const int all = static_cast<int>(outline.uses_in(0, outline.all_blocks()).size());
  take_slabs(fewest(1, all, Search::doubling, longer_than(bounded), [&](int under_way) {
    take_slabs(under_way);
    return step.run(rooms);
  }));
  return rooms;
}

std::int64_t run_unbounded(StepOrder& step) {
  const std::int64_t unbounded = step.run({});
  MP_CHECK(unbounded >= 0, "an order stands still even with unbounded buffers");
  return unbounded;
}

}  // namespace

StepOnPaper::StepOnPaper(const Outline& outline, const Order& order, const Network& network)
    : outline_(outline),
      network_(network),
      prices_(outline, network),
      order_(order),
      source_(outline, prices_, order_) {
  set_calls(network_.calls, outline);
}

std::int64_t StepOnPaper::with_all_rooms() {
  if (!with_all_rooms_) with_all_rooms_ = run_unbounded(source_);
  return *with_all_rooms_;
}

void StepOnPaper::choose_rooms() {
  if (rooms_) return;
  if (outline_.moves_blocks()) {  // passes stay in the rooms that they had
    Outline still = outline_;
    still.next_first_block.clear();
    StepOrder before(still, prices_, order_);
    const std::int64_t unbounded = run_unbounded(before);
    rooms_ = rooms_of_step(outline_, before, unbounded);
  } else {
    const std::int64_t unbounded = with_all_rooms();
    rooms_ = rooms_of_step(outline_, source_, unbounded);
  }
}

StepTimes StepOnPaper::in_rooms() {
  if (network_.unseen) {  // which only the simulator knows
    PlannedStep written = write();
    return {.step = written.expected.step, .busy = std::move(written.expected.busy)};
  }
  choose_rooms();
  StepTimes times{.step = source_.run(*rooms_), .busy = {}};
  for (int rank = 0; rank < outline_.stages; ++rank) {
    std::int64_t& busy = times.busy.emplace_back(0);
    for (const StepItem& item : source_.tasks().lines[rank]) busy += item.task.end - item.task.start;
  }
  return times;
}

std::int64_t StepOnPaper::actions() const {
  std::int64_t actions = 0;
  for (const std::vector<StepItem>& line : source_.tasks().lines)
    for (const StepItem& item : line)
      actions += item.task.kind == TaskKind::scalars ? outline_.stages : item.task.peer >= 0 ? 2 : 1;
  return actions;
}

PlannedStep StepOnPaper::write() {
  choose_rooms();
  WrittenStep written = write_step(outline_, source_, *rooms_);
  PlannedStep step{
      .program = std::move(written.program), .placement = std::move(written.placement), .network = network_};
  step.expected = simulate(step.program, durations_of(step.program, outline_, network_), step.network);
  return step;
}

}  // namespace mindpipe
