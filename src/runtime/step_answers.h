#pragma once
#include <array>
#include <cstdint>
#include <optional>

#include "backend.h"
#include "comm/waiting.h"

namespace mindpipe {

/// What a step's scalars say, the same on every rank.
struct StepScalars {
  std::int64_t step = 0;
  double loss = 0;  ///< mean over the valid tokens of the whole batch; of an evaluation, their sum
  std::int64_t valid = 0;
  double gradient_norm = 0;  ///< of the mean gradient, before clipping
  bool applied = true;  ///< false: no valid token, or a gradient that is not finite: the step changes nothing
  std::array<std::int64_t, Hits::places> hits{};  ///< of an evaluation
};

/// How the host learns what was decided on the device: of each step at once where the host may read its
/// memory, and one step late elsewhere, from a ring of pinned memory, so that it need not wait for the step
/// that it has just put into the queues.
class StepAnswers {
 public:
  /// `pinned`: none where the host may read the backend's memory.
  StepAnswers(Backend& backend, Waiting& waiting, Memory* pinned);

  /// Asks for a step's decision, behind it in the compute queue.
  void ask_decision(std::int64_t step, std::int64_t valid, const Tensor& decision);
  /// Asks for the sums of an evaluation's losses and hits, behind it in the compute queue.
  void ask_evaluation(std::int64_t step, std::int64_t valid, const Tensor& sums);
  /// The answer that is due once a step has been put into the queues: its own, or that of the one before,
  /// which the host waits for; so it is never more than two steps ahead.
  std::optional<StepScalars> due();
  /// The oldest that was asked for and not taken, waiting for it.
  std::optional<StepScalars> oldest();

 private:
  void ask(std::int64_t step, std::int64_t valid, const Tensor& numbers, bool is_decision);
  struct Question {
    std::int64_t step = 0, valid = 0;
    bool is_decision = true;
    std::uint64_t event = 0;
    std::array<double, Decision::places> numbers{};  ///< where they need no pinned memory
  };
  static constexpr std::int64_t ring = 2;

  Backend& backend_;
  Waiting& waiting_;
  Arena arena_;
  std::array<Tensor, ring> pinned_;
  std::array<Question, ring> questions_;
  std::int64_t asked_ = 0, told_ = 0;
};

}  // namespace mindpipe
