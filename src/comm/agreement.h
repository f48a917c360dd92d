#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <memory>

#include "comm/mpi.h"
#include "comm/waiting.h"

namespace mindpipe {

/// What all ranks of a job find out together while each goes on with its work: of each number the largest
/// that any rank has. Nothing stands still for it: a question is asked at one place of the work, and its
/// answer is taken at a later one. All ranks ask, and take answers, in one order.
class Agreement {
 public:
  using Numbers = std::array<std::uint64_t, 3>;

  /// In a space of messages of its own. Collective.
  Agreement(const World& world, Waiting& waiting);
  ~Agreement();
  Agreement(const Agreement&) = delete;
  Agreement& operator=(const Agreement&) = delete;

  /// Asks with this rank's numbers.
  void ask(const Numbers& mine);
  /// Moves on what was asked, without waiting.
  void progress();
  /// The answer to the oldest question whose answer was not taken. Waits for the ranks that have yet to ask.
  Numbers answer();

 private:
  struct Question {
    Numbers mine{}, most{};
    MPI_Request request = MPI_REQUEST_NULL;
  };
  static bool is_answered(Question& question);

  MpiComm comm_;  ///< none: there is one rank
  Waiting& waiting_;
  std::deque<std::unique_ptr<Question>> open_;  ///< MPI writes to them
};

}  // namespace mindpipe
