#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "comm/grid.h"
#include "program/action.h"
#include "program/clock/calls.h"
#include "trace/recorder.h"

namespace mindpipe {

/// A sum between the ranks that share a product, by the action that it ran in.
struct TracedSum {
  int action = 0;     ///< number in the list
  int operation = 0;  ///< number among the names of the trace
  std::int64_t start = 0, end = 0;
  bool operator==(const TracedSum&) const = default;
};

/// A question of the first rank to another one and its answer, each by its sender's and its receiver's clock.
struct Ping {
  std::int64_t asked = 0, heard = 0, answered = 0, back = 0;
  bool operator==(const Ping&) const = default;
};

/// What one rank recorded: of each step the times of all actions of its list, by its host's clock, its tensor
/// sums in order, and what its host did.
struct RankTimes {
  std::vector<std::vector<Recorder::Times>> steps;
  std::vector<std::vector<TracedSum>> sums;
  std::vector<HostCounts> host;
  std::vector<Ping> pings;  ///< questions to this rank, if it is the first of another host
};

/// The last steps of a run, or of a supernet its last subnets as one step, with the program that they ran, on
/// all ranks: enough to run them again on paper.
struct StepTrace {
  Coord grid{1, 1, 1, 1};
  Program program;                               ///< a list for each stage
  std::vector<std::vector<std::int64_t>> paper;  ///< what its actions take on paper, in nanoseconds
  /// Whether these times are this machine's: of a profile that was measured on it, or of an imitated device.
  bool is_priced = true;
  bool of_subnets = false;              ///< the one step is a supernet's last subnets, in their order
  std::vector<std::int64_t> steps;      ///< numbers, counted from 1
  std::vector<RankTimes> ranks;         ///< by rank of the job
  std::vector<std::string> hosts;       ///< by rank of the job
  int ranks_per_node = 0;               ///< ranks of a node of an imitated device; 0: each host is one
  std::vector<std::string> operations;  ///< names of tensor sums
  Calls calls = {};                     ///< messages of which its transfers were made
  std::int64_t clock_bound = 0;         ///< nanoseconds that times of different hosts may be off by
  int pauses = 0;                       ///< between steps, which leave_out_pauses has taken out
  std::int64_t paused = 0;              ///< nanoseconds of them all
  std::string configuration;            ///< the run's, as YAML
  std::string maker, device, injected;  ///< version of the program; what computed; faults that were asked for

  /// Names the node of each rank of the job; no names: all ranks are in one.
  std::vector<std::string> nodes() const;
  const std::vector<Action>& list(int rank) const {
    return program.ranks[program_rank_at(grid, coord_at(grid, rank))];
  }
};

}  // namespace mindpipe
