#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "core/bulk_parts.h"
#include "program/clock/transfer.h"
#include "program/sample_outline.h"

// What folding sums over data under passes gives, where messages and sums meet at ports: 4 stages, 16
// micro-batches, messages of 0.02 and parts of 0.1 of a stage's forward.
namespace mindpipe {
namespace {

/// A step of equal stages whose sums take so many forwards of a stage.
struct Folded {
  static constexpr std::int64_t forward = 20'000'000, message = forward / 50, part = forward / 10;
  static constexpr int stages = 4, micro_batches = 16;

  Outline outline;
  Network network;
  double sums = 0;  ///< in forwards of a stage
  PlannedStep step;

  Folded(const std::string& schedule, int chunks, double forwards, const MicroBatchGroups& groups = {})
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
      unit.gradients = parts * (most_part_bytes - overhang(2, most_part_bytes));
      network.data.picoseconds_per_byte =
          1000 * of_chunk / static_cast<double>(sum_over_data(outline, &unit - outline.units.data()).bytes);
    }
    step = make_program(outline, schedule_named(schedule), network, 0, groups);
  }
  Durations durations() const { return durations_of(step.program, outline, network); }
  double in_forwards(const Timeline& line) const {
    EXPECT_TRUE(line.finished);
    return static_cast<double>(line.step) / forward;
  }
  double folded() const { return in_forwards(step.expected); }
  /// The part of the sums that the step is longer for.
  double exposed() const { return (folded() - without_sums()) / sums; }
  double without_sums() const {
    Durations free = durations();
    for (const Place& place : step.program.places())
      if (step.program.at(place).kind == ActionKind::reduce) free[place.rank][place.index] = 0;
    return in_forwards(simulate(step.program, free, network));
  }
  /// Sums begin when all passes of their rank have ended.
  double unfolded() const {
    Program program = step.program;
    for (auto& list : program.ranks) {
      const auto last = std::find_if(list.rbegin(), list.rend(), [](const Action& a) { return is_pass(a); });
      const int index = static_cast<int>(list.rend() - last) - 1;
      for (Action& action : list)
        if (action.kind == ActionKind::reduce) action.after.push_back(index);
    }
    return in_forwards(simulate(program, durations(), network));
  }
  /// A chunk's sums go in one piece behind its last message, and whoever came first leaves first: a message
  /// of the rank to itself is of their class.
  double in_one_piece() const {
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
    return in_forwards(simulate(program, times, met));
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

/// Forwards of a stage that sums take which are 20, 28 and 44 % of 1f1b's step.
constexpr double folded_shares[] = {0.2 * 71.9, 0.28 * 79.9, 0.44 * 102.8};
struct FoldedRow {
  const char* schedule;
  int chunks;
  int last_group;  ///< micro-batches whose backwards of a chunk follow each other at the end
  double folded[3], unfolded[3], in_one_piece[3];
  MicroBatchGroups groups = {};
};
const FoldedRow folded_rows[] = {
    {"1f1b", 1, 1, {71.9, 79.9, 102.8}, {71.9, 79.9, 102.8}, {71.9, 79.9, 102.8}},
    {"interleaved", 4, 4, {58.9, 66.9, 89.7}, {65.2, 73.2, 96.1}, {63.6, 71.6, 94.4}},
    {"breadth-first", 4, 16, {53.8, 55.8, 72.0}, {64.8, 72.8, 95.6}, {63.3, 71.3, 94.2}},
    {"breadth-first", 2, 16, {59.3, 63.3, 81.2}, {67.0, 75.0, 97.9}, {66.1, 74.1, 96.9}},
    {"elastic", 4, 8, {54.2, 61.2, 84.0}, {65.2, 73.2, 96.0}, {63.7, 71.7, 94.6}, {{4, 4, 4, 4}, {4, 4, 8}}}};

/// Calls see(row, share, step) for each row and share.
template <class See>
void for_folded_rows(const See& see) {
  for (const FoldedRow& row : folded_rows)
    for (int share = 0; share < 3; ++share) {
      SCOPED_TRACE(std::string(row.schedule) + " of " + std::to_string(row.chunks) + " chunks, share " +
                   std::to_string(share));
      see(row, share, Folded(row.schedule, row.chunks, folded_shares[share], row.groups));
    }
}

TEST(FoldedSums, TakeTheTimeOfTheTable) {
  for_folded_rows([](const FoldedRow& row, int share, const Folded& step) {
    EXPECT_NEAR(step.folded(), row.folded[share], 0.015 * row.folded[share]);
    EXPECT_NEAR(step.unfolded(), row.unfolded[share], 0.015 * row.unfolded[share]);
    EXPECT_NEAR(step.in_one_piece(), row.in_one_piece[share], 0.015 * row.in_one_piece[share]);
  });
}

TEST(FoldedSums, AreExposedAsTheFormulaSays) {
  for_folded_rows([](const FoldedRow& row, int, const Folded& step) {
    const double of_chunk = step.sums / row.chunks, hidden = 2.0 * row.last_group / row.chunks;
    const double exposed = of_chunk + (row.chunks - 1) * std::max(0.0, of_chunk - hidden);
    EXPECT_NEAR(step.exposed(), exposed / step.sums, 0.04);
  });
}

TEST(FoldedSums, HoldAMessageUpForOnePartAtMost) {
  for_folded_rows([](const FoldedRow&, int, const Folded& step) {
    EXPECT_LE(step.slow_message(),
              static_cast<double>(Folded::message + Folded::part) / Folded::forward + 1e-6);
  });
}

TEST(FoldedSums, OfAnElasticScheduleTakeHalfTheTapes) {
  const Folded step("elastic", 4, folded_shares[0], {{4, 4, 4, 4}, {4, 4, 8}});
  EXPECT_NEAR(peak_tapes(step.step.program, step.outline)[0] / 4.0, 7.8, 0.05);
  const Folded all("breadth-first", 4, folded_shares[0]);
  EXPECT_EQ(peak_tapes(all.step.program, all.outline)[0], 4 * 16);
}

}  // namespace
}  // namespace mindpipe
