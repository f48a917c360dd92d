#pragma once
#include <cstdint>
#include <span>

#include "program/clock/simulate.h"
#include "program/outline.h"

namespace mindpipe {

/// A bulk transfer: the bytes that one rank sends, at most, in parts that follow each other.
struct Transfer {
  std::int64_t bytes = 0;
  int parts = 1;
  /// The share that one part has of a quantity of the whole: of its bytes, or its time.
  std::int64_t of_part(int part, std::int64_t whole) const { return of_turn(part, parts, whole); }
};

/// Bytes of a part of bulk traffic: what the slowest of the links that carry any takes 250 us for, so that no
/// message waits longer for a part, but no more than the network's longest.
std::int64_t part_bytes_on(const Network& network, const Outline& outline, bool blocks_may_move = false);

/// Bytes that one of so many ranks sends, at most, so that `bytes` are scattered among them, or gathered.
std::int64_t sent_in_group(int ranks, std::int64_t bytes);

/// The sum over data of the gradient of one use of a unit; of what all subnets share, of a window's whole
/// numbers of eight bytes for each of four.
Transfer sum_over_data(const Outline& outline, int unit);
/// The values of a unit that data ranks have updated in shares.
Transfer gather_over_data(const Outline& outline, int unit);
/// Such a sum on its way to another rank that uses the unit.
Transfer exchange_of(const Outline& outline, int unit);
/// The states of units on their way to the rank of their next user.
Transfer move_of(const Outline& outline, std::span<const int> units);
/// States of units on their way, as a table of prices has them.
struct MoveByTable {
  bool is_priced = false;
  std::int64_t time = 0;   ///< nanoseconds, all units together that have a price
  std::int64_t bytes = 0;  ///< all others together
};
MoveByTable move_by_table(const Outline& outline, std::span<const int> units);

/// Says what an outline knows of the messages that are made of its transfers.
void set_calls(Calls& calls, const Outline& outline);

}  // namespace mindpipe
