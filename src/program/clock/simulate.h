#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/link.h"
#include "program/action.h"
#include "program/clock/calls.h"
#include "program/clock/ports.h"
#include "program/clock/task.h"
#include "program/outline.h"

namespace mindpipe {

/// The network of a program's ranks.
struct Network {
  Link message;                                 ///< between pipeline ranks ...
  std::map<std::pair<int, int>, Link> between;  ///< ... unless this (from, to) says otherwise
  Link data, grid;                              ///< collectives of these groups
  Link copies = {};                             ///< between a device and its host, each way
  Link tensor = {};                             ///< sums between ranks that share a product, inside passes
  std::int64_t longest_part = most_part_bytes;  ///< bytes of a part of bulk traffic, at most
  Calls calls = {};                             ///< messages of what is planned for it
  std::optional<Unseen> unseen = {};            ///< traffic that some does not find at ports
  /// Whether tensor sums can meet messages of the pipeline, or sums over data, at a port.
  bool tensor_meets(bool messages, bool sums) const;
  /// The link of messages from one rank to another.
  const Link& link(int from, int to) const {
    const auto special = between.find({from, to});
    return special == between.end() ? message : special->second;
  }
  const Link& of(const Action& action, int rank) const;
  /// How long the sums inside a pass take.
  std::int64_t tensor_time(const TensorSums& sums) const {
    return sums.calls > 0 ? sums.calls * tensor.latency + tensor.carries(sums.bytes) : 0;
  }
  /// What those of a pass that takes so long, with them, ask of ports. Where they meet no other they ask for
  /// nothing: they are time of their pass.
  Load tensor_load(const TensorSums& sums, std::int64_t pass) const {
    const std::int64_t takes = sums.calls > 0 ? std::min(pass, tensor.carries(sums.bytes)) : 0;
    if (takes == 0) return {};
    return {takes, std::min(pass - takes, sums.calls * tensor.latency), tensor.level, sums.calls};
  }
  std::int64_t tensor_time(const Action& pass) const {
    return tensor_time(TensorSums{pass.sums, pass.bytes});
  }
};

/// Nanoseconds of every action where it meets no other: [rank][index]; a pass with its sums. A message takes
/// what its send takes, of which all but the latency of its link is time of ports. (`replay` has times of
/// all ranks of a job, and a walk of its own.)
using Durations = std::vector<std::vector<std::int64_t>>;
Durations durations_of(const Program& program, const Outline& outline, const Network& network);

/// From the moment at which all that an action needs is there, of a message both its ends, to its end.
struct Span {
  std::int64_t start = -1, end = -1;
};

/// A program in virtual time.
struct Timeline {
  bool finished = false;                           ///< false: some actions never start; their spans stay -1
  std::int64_t step = 0;                           ///< nanoseconds from the first start to the last end
  std::vector<std::vector<Span>> spans;            ///< [rank][index]
  std::vector<std::vector<std::int64_t>> started;  ///< numbers in the order of starts, dependencies first
  std::vector<std::int64_t> busy;  ///< busy time of each rank's compute queue, tensor sums included
  std::vector<std::int64_t> sums;  ///< busy time inside tensor sums
  double bubble(int rank) const {
    return step == 0 ? 0 : 1 - static_cast<double>(busy[rank]) / static_cast<double>(step);
  }
};

/// Runs the lists in virtual time: each queue first in, first out; a message when both its ends are there.
/// What travels meets at ports.
/// `watch_ports`: told of each transfer that leaves a port.
Timeline simulate(const Program& program, const Durations& durations, const Network& network,
                  const std::function<void(const Ports::Left&)>& watch_ports = nullptr);

}  // namespace mindpipe
