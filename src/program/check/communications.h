#pragma once
#include <span>
#include <string>
#include <vector>

#include "program/clock/task.h"
#include "program/clock/transfer.h"

namespace mindpipe {

/// A message between two ranks of a supernet's program, or a sum over data, or one part of it.
struct Communication {
  std::int64_t ticket = 0;  ///< a number that is alike on all ranks
  int from = 0, to = -1;    ///< -1: a sum
  Payload payload = Payload::none;
  std::int64_t subnet = 0;  ///< the action's
  int micro_batch = -1, unit = -1;
  int part = 0, parts = 1;
  std::int64_t bytes = 0;   ///< bytes of the part; 0 for a sum
  std::uint64_t units = 0;  ///< a number for the units that a move carries

  /// Whether `action`, on `rank`, is a call of it.
  bool is_met_by(const Action& action, int rank) const;
  std::string text() const;
};

/// The sequence of all communication of a supernet's program as each rank derives it from what the planner
/// lets begin. Where the sequences of all ranks are equal, and each rank's list follows its own, both
/// ends of all communication are alike.
class Communications {
 public:
  explicit Communications(const Outline& outline) : outline_(outline) {}

  /// What follows from these starts, behind what there was.
  std::vector<Communication> add(std::span<const Task> starts);
  /// A number of 64 bits for the sequence so far, and for the times of all starts: ranks that plan by other
  /// prices find it out before their sequences differ.
  std::uint64_t digest() const { return digest_; }

 private:
  void add(const Task& start);
  void message(const Task& start);
  void in_parts(Communication whole, const Transfer& transfer);
  void push(Communication one);

  const Outline& outline_;
  std::int64_t tickets_ = 0;
  std::uint64_t digest_ = 0xcbf29ce484222325u;
  std::vector<Communication> newest_;
};

}  // namespace mindpipe
