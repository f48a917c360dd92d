#pragma once
#include <deque>
#include <map>
#include <span>
#include <tuple>

#include "program/check/communications.h"
#include "program/check/reading.h"

namespace mindpipe {

/// Follows the communication of a list: it is that of the sequence which all ranks have, where there is one;
/// tickets ascend, and the parts of a transfer follow each other in their queue. With both ends of all
/// communication alike, no ranks' lists can wait for each other in a circle: an action waits for earlier ones
/// of its list alone, and a circle through several lists would have to come back to a smaller ticket.
class TransferBook {
 public:
  explicit TransferBook(Reading& reading) : reading_(reading) {}
  /// Takes the next communications: the list has all of them in which its rank takes part, and no others.
  void expect(std::span<const Communication> sequence);
  void see();
  /// The list has come to the end of the sequence.
  void end_of_sequence();
  void end();

 private:
  void compare();
  /// What is the same in all parts of a transfer.
  using Whole = std::tuple<std::int64_t, int, int, int, std::vector<int>>;
  struct Line {
    int next = 0;  ///< part that is due; 0: none is under way
    Whole whole;
  };

  Reading& reading_;
  std::int64_t newest_ticket_ = -1;
  bool has_sequence_ = false;
  std::deque<Communication> due_;
  std::map<QueueKey, Line> lines_;  ///< queues with transfers in several parts
};

}  // namespace mindpipe
