#pragma once
#include <cstdint>
#include <limits>
#include <vector>

#include "program/clock/prices.h"
#include "program/schedules/order.h"

namespace mindpipe {

/// Bytes of tapes of the stage that has the most with 1f1b on the same stages: what other orders are measured
/// by.
std::int64_t tapes_of_1f1b(const Outline& outline);
/// Bytes of tapes that schedule.memory allows a stage; without it any number.
std::int64_t tapes_asked(const Outline& outline);
/// Bytes of tapes that a schedule which puts weight gradients off keeps to where nothing else is said.
std::int64_t own_tapes(const Outline& outline, ScheduleKind schedule);
/// Bytes of tapes that a schedule which puts weight gradients off may have on a stage, with
/// Outline::fewer_tapes; 0: it puts none off.
std::int64_t most_tapes(const Outline& outline, ScheduleKind schedule);

/// When weight gradients that were put off are run.
struct WeightRule {
  bool puts_off = true;            ///< else every backward is whole
  int quarters = 4;                ///< into gaps of so many quarters of their time ...
  std::int64_t most_tapes = 0;     ///< ... and before what would need more bytes on a stage; 0: no limit
  std::vector<int> percents = {};  ///< in place of quarters: percent of their time by stage

  int percent_on(int stage) const { return percents.empty() ? 25 * quarters : percents[stage]; }
};

/// What passes of one chunk take, each in nanoseconds and bytes.
struct ChunkPasses {
  int stage = 0;
  std::int64_t forward = 0, whole = 0, input = 0, weight = 0;
  std::int64_t up = 0, down = 0;  ///< messages to the chunk behind it and to the one before it
  std::int64_t saved = 0, put_off = 0;
};

/// Where a pass stands in an order.
struct PlaceOfPass {
  int stage = 0, place = 0;
};

/// An inner clock for orders: what a step takes where rooms are enough and nothing but passes and the
/// messages between them takes time. A pass starts at the largest of three ends: those of the pass before it
/// on its stage, of what it reads, and of the weight gradients that have to make room for it. Much faster
/// than the simulator, which has the last word.
class PassClock {
 public:
  struct Run {
    std::int64_t step = 0;        ///< nanoseconds
    std::int64_t most_tapes = 0;  ///< bytes of the stage that has the most, Outline::fewer_tapes counted
    std::int64_t beyond = 0;      ///< bytes that all stages together have beyond the rule's limit at a time
    Order order;                  ///< if told: with the weight gradients, where backwards are split
    std::vector<PlaceOfPass> critical;  ///< if told: passes that decide when the step ends, the last first
  };
  /// What a run tells beside times and tapes.
  enum class Tells : std::uint8_t { times, critical, order };
  static constexpr std::int64_t any_length = std::numeric_limits<std::int64_t>::max();

  PassClock(const Outline& outline, const PriceList& prices);

  /// Runs an order of forwards and whole backwards, or, where the rule puts nothing off, one that has its
  /// weight gradients. A step of -1: the order stands still. `longest`: a run that cannot but last longer, or
  /// breaks the rule's limit, is left there, with a step beyond that.
  Run run(const Order& order, const WeightRule& rule, Tells tells = Tells::times,
          std::int64_t longest = any_length) const;

  /// Nanoseconds that the passes of the stage with the most work take: a step takes as long at least.
  std::int64_t longest_work() const;
  const std::vector<ChunkPasses>& chunks() const { return chunks_; }
  /// What a stage holds from the beginning: Outline::fewer_tapes.
  const std::vector<std::int64_t>& held() const { return held_; }
  int micro_batches() const { return micro_batches_; }
  /// Micro-batches of a shard.
  int of_shard() const { return of_shard_; }

 private:
  std::vector<ChunkPasses> chunks_;
  std::vector<std::int64_t> held_;  ///< bytes by stage
  int stages_, micro_batches_, of_shard_;
};

}  // namespace mindpipe
