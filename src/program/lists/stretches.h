#pragma once
#include <span>
#include <vector>

#include "program/causal/causal_planner.h"
#include "program/check/list_check.h"
#include "program/lists/list_writer.h"

namespace mindpipe {

/// The rings of a rank that trains a supernet: a few buffers for what leaves to each neighbour.
Rings rings_of_subnets(int rank);

/// A supernet's program as it is written, a stretch at a time, for some ranks: planned, written, numbered,
/// and proved sound before it runs.
class Stretches {
 public:
  /// Writes the lists of `ranks`, from subnet `first` on, as after a drain before it.
  Stretches(const Outline& outline, const Network& network, const SubnetRules& rules,
            const std::vector<int>& ranks, std::int64_t first = 0);

  /// The next stretch of each of these ranks: all that can be decided without the next, unknown subnet; with
  /// `last`, to a drain, at which nothing is open.
  std::vector<CheckedStretch> next(std::span<const Subnet> more, bool last);

  const CausalPlanner& planner() const { return planner_; }
  /// A number for all communication that was planned so far. Ranks whose numbers are equal agree on both ends
  /// of every message.
  std::uint64_t digest() const { return communications_.digest(); }

 private:
  struct Rank {
    ListWriter writer;
    ListCheck check;
  };
  CausalPlanner planner_;
  Communications communications_;
  std::vector<Rank> ranks_;
};

}  // namespace mindpipe
