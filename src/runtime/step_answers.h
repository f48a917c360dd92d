#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <optional>

#include "comm/waiting.h"
#include "runtime/late_numbers.h"

namespace mindpipe {

/// What a step's scalars say, the same on every rank.
struct StepScalars {
  std::int64_t step = 0;
  double loss = 0;  ///< mean over the valid tokens of the whole batch
  std::int64_t valid = 0;
  double gradient_norm = 0;  ///< of the mean gradient, before clipping
  bool applied = true;  ///< false: no valid token, or a gradient that is not finite: the step changes nothing
};

/// How the host learns what was decided on the device: of each step at once where the host may read its
/// memory, and one step late elsewhere, so that it need not wait for the step that it has just put into the
/// queues.
class StepAnswers {
 public:
  /// `pinned`: none where the host may read the backend's memory.
  StepAnswers(Backend& backend, Waiting& waiting, Memory* pinned)
      : waiting_(waiting), numbers_(backend, pinned, Decision::places, 2) {}

  /// Asks for a step's decision, behind it in the compute queue.
  void ask(std::int64_t step, std::int64_t valid, const Tensor& decision);
  /// The answer that is due once a step has been put into the queues: its own, or that of the one before,
  /// which the host waits for; so it is never more than two steps ahead.
  std::optional<StepScalars> due();
  /// The oldest that was asked for and not taken, waiting for it.
  std::optional<StepScalars> oldest();

 private:
  struct Question {
    std::int64_t step = 0, valid = 0;
  };

  Waiting& waiting_;
  LateNumbers numbers_;
  std::deque<Question> questions_;
};

}  // namespace mindpipe
