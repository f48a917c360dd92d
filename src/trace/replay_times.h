#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trace/replay_graph.h"

namespace mindpipe {

/// A tensor sum inside a pass: what its rank computes before it, and how long it takes once all have come.
struct SumTimes {
  std::int64_t before = 0, takes = 0;
};

/// What the actions of one step take, by number in the graph, with all waiting for others taken out.
struct ReplayRow {
  std::vector<std::int64_t> lag;    ///< from the end of all that it waited for to its begin: the host's time
  std::vector<std::int64_t> lasts;  ///< computes; communication: from the last member's begin to its end here
  std::vector<char> eager;  ///< members that waited for nobody: sends before anybody received, empty shares
  std::vector<SumTimes> sums;  ///< see ReplayTimes::sums_of
};

/// Effects that came before their causes.
struct Violations {
  std::int64_t count = 0;
  std::int64_t worst = 0;  ///< nanoseconds
  std::string first;       ///< sentence about the earliest
};

/// The rows of a trace, or one row that stands for every step.
struct ReplayTimes {
  std::vector<int> sums_of;  ///< the first tensor sum of each action; of none where equal to the next one's
  std::vector<ReplayRow> rows;
  Violations violations;

  const ReplayRow& row(std::size_t step) const { return rows.size() == 1 ? rows.front() : rows[step]; }
  int sums(int action) const { return sums_of[action + 1] - sums_of[action]; }
};

/// What every action of a trace took by itself. Times that are off by no more than `bound` violate nothing.
ReplayTimes measured_times(const StepTrace& trace, const ReplayGraph& graph, std::int64_t bound = 0);

/// One row of medians over some of the rows, by their numbers; no numbers: over all. What comes between
/// steps is unknown of the first one, whose share counts only where it stands alone.
ReplayTimes expected_times(const ReplayTimes& measured, const ReplayGraph& graph, std::vector<int> rows = {});

/// One row of plain averages over some steps of a trace: what an action took from its begin to its end, its
/// waits for others included. It is what a replay would have that did not take waits out.
ReplayTimes plain_averages(const StepTrace& trace, const ReplayTimes& measured, const ReplayGraph& graph,
                           const std::vector<int>& steps);

}  // namespace mindpipe
