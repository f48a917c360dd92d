#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "comm/mpi.h"
#include "comm/waiting.h"

namespace mindpipe {

/// What all ranks of a job find out together while each goes on with its work: of each number the largest
/// that any rank has. Nothing stands still for it: a question is asked at one place of the work, and its
/// answer is taken at a later one. All ranks ask, and take answers, in one order.
class Agreement {
 public:
  using Numbers = std::vector<std::uint64_t>;

  /// In a space of messages of its own. Collective.
  Agreement(const World& world, Waiting& waiting);
  ~Agreement();
  Agreement(const Agreement&) = delete;
  Agreement& operator=(const Agreement&) = delete;

  /// Asks with this rank's numbers, as many as all ranks have.
  void ask(Numbers mine);
  /// Moves on what was asked, without waiting.
  void progress();
  /// Whether the answer to the oldest question that is open, if there is one, can be taken without waiting.
  bool is_answered();
  /// The answer to the oldest question whose answer was not taken. Waits for the ranks that have yet to ask;
  /// `describe` says in words for what.
  Numbers answer(const Waiting::Describe& describe);

 private:
  struct Question {
    Numbers mine, most;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  static bool is_answered(Question& question);

  MpiComm comm_;  ///< none: there is one rank
  Waiting& waiting_;
  std::deque<std::unique_ptr<Question>> open_;  ///< MPI writes to them
};

}  // namespace mindpipe
