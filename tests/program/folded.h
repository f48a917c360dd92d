#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/bulk_parts.h"
#include "program/clock/transfer.h"
#include "program/sample_outline.h"

namespace mindpipe {

/// A step of equal stages whose sums take so many forwards of a stage.
struct Folded {
  /// Lists with the times of their actions.
  struct InTime {
    Program program;
    Durations durations;
    Network network;
  };
  static constexpr std::int64_t forward = 20'000'000, message = forward / 50, part = forward / 10;
  static constexpr int stages = 4, micro_batches = 16;

  Outline outline;
  Network network;
  double sums = 0;  ///< in forwards of a stage
  PlannedStep step;

  /// `sharded`: of what sums take, one half scatters gradients and the other gathers values.
  Folded(const std::string& schedule, int chunks, double forwards, const MicroBatchGroups& groups = {},
         bool sharded = false)
      : outline(equal_stages(stages, micro_batches, chunks,
                             {.forward = forward,
                              .backward = 2 * forward,
                              .backward_input = forward,
                              .backward_weight = forward})),
        sums(forwards) {
    outline.data = 2;
    network.message.picoseconds_per_byte = 1000.0 * message / 8;
    const double of_chunk = forwards * forward / chunks;
    for (UnitCost& unit : outline.units) {
      const std::int64_t parts = std::llround(of_chunk / part);
      unit.gradients = parts * without_overhang(2, most_part_bytes);
      network.data.picoseconds_per_byte =
          1000 * of_chunk / static_cast<double>(sum_over_data(outline, &unit - outline.units.data()).bytes);
    }
    outline.sharded_optimizer = sharded;
    for (UnitCost& unit : outline.units)
      if (sharded) unit.values = unit.gradients;
    step = make_program(outline, schedule_named(schedule), network, groups);
  }
  Durations durations() const { return durations_of(step.program, outline, network); }
  static double in_forwards(const InTime& lists) {
    const Timeline line = simulate(lists.program, lists.durations, lists.network);
    EXPECT_TRUE(line.finished);
    return static_cast<double>(line.step) / forward;
  }
  double folded() const { return in_forwards({step.program, durations(), network}); }
  double unfolded() const { return in_forwards(sums_behind_passes()); }
  double in_one_piece() const { return in_forwards(sums_in_one_piece()); }
  /// The part of the sums that the step is longer for.
  double exposed() const { return (folded() - without(ActionKind::reduce)) / sums; }
  double without(ActionKind kind) const {
    Durations free = durations();
    for (const Place& place : step.program.places())
      if (step.program.at(place).kind == kind) free[place.rank][place.index] = 0;
    return in_forwards({step.program, std::move(free), network});
  }
  /// Sums begin when all passes of their rank have ended.
  InTime sums_behind_passes() const {
    Program program = step.program;
    for (auto& list : program.ranks) {
      const auto last = std::find_if(list.rbegin(), list.rend(), [](const Action& a) { return is_pass(a); });
      const int index = static_cast<int>(list.rend() - last) - 1;
      for (Action& action : list)
        if (action.kind == ActionKind::reduce) action.after.push_back(index);
    }
    return {std::move(program), durations(), network};
  }
  /// A chunk's sums go in one piece behind its last message, and whoever came first leaves first: a message
  /// of the rank to itself is of their class.
  InTime sums_in_one_piece() const {
    Program program = step.program;
    Durations times = durations();
    Network met = network;
    for (int rank = 0; rank < stages; ++rank) {
      met.between[{rank, rank}] = network.data;
      auto& list = program.ranks[rank];
      std::map<int, int> last;                            // what a chunk's sums wait for
      std::map<int, std::int64_t, std::greater<>> takes;  // a chunk's sums, the last chunk's first
      for (int index = 0; index < static_cast<int>(list.size()); ++index) {
        const Action& action = list[index];
        // Rings have rooms for all, however late a message is.
        std::erase_if(list[index].after, [&](int before) {
          return is_message(list[before]) && sends(list[before]) && is_pass(list[index]);
        });
        if (action.kind == ActionKind::receive) list[index].after.clear();
        const bool leaves = action.kind == ActionKind::send && action.payload == Payload::gradient;
        if (leaves || (is_pass(action) && action.first == 0)) last[action.chunk] = index;
        if (action.kind == ActionKind::reduce) takes[action.chunk] += std::exchange(times[rank][index], 0);
      }
      for (const auto& [chunk, time] : takes)
        for (const ActionKind kind : {ActionKind::send, ActionKind::receive}) {
          Action action = action_of(kind);
          action.peer = rank;
          action.payload = Payload::activation;
          if (kind == ActionKind::send) action.after = {last.at(chunk)};
          list.push_back(std::move(action));
          times[rank].push_back(time);
        }
    }
    return {std::move(program), std::move(times), std::move(met)};
  }
  /// A time that 99 % of messages keep, from the moment at which they are ready.
  double slow_message() const {
    std::vector<std::int64_t> times;
    for (const Place& place : step.program.places())
      if (step.program.at(place).kind == ActionKind::send) {
        const Span& span = step.expected.spans[place.rank][place.index];
        times.push_back(span.end - span.start);
      }
    const auto slow = times.begin() + static_cast<std::ptrdiff_t>(99 * times.size() / 100);
    std::nth_element(times.begin(), slow, times.end());
    return static_cast<double>(*slow) / forward;
  }
};

}  // namespace mindpipe
