#pragma once
#include "app/train/step_end_report.h"
#include "app/train/training_loop.h"
#include "runtime/balancer.h"

namespace mindpipe {

/// A training step by step, each a place. Ranks agree without a wait: what each wishes is asked as a step
/// begins, and heard behind its end. Where steps go wrong it goes back to a checkpoint.
class StepTraining final : public TrainingLoop {
 public:
  /// Takes what TrainingLoop does, but for the report.
  StepTraining(Run& run, RunDirectory* directory, Corpus& corpus, HeldOut* validation, Saves& saves,
               const RunProgress& begun, RunEnergy* energy = nullptr)
      : TrainingLoop(std::make_unique<StepEndReport>(run), run, directory, corpus, validation, saves, begun,
                     energy) {}

  std::string why_untraced() const override;

 private:
  void begin() override;
  void train() override;
  std::string newest() const override { return fmt::format("step {}", done_); }
  std::string place() const override { return newest(); }
  std::string of_what_evaluated() const override { return ""; }
  void add_remaining() override;
  bool goes_back() override;

  static constexpr std::int64_t ahead = 3;  ///< the step that begins, the next, and one to spare
  std::string tell_move();
  Wishes::Numbers balances();
  void balance(double seconds);
  void add(const StepScalars& scalars);
  void go_back();

  std::optional<Balancer> balancer_;  ///< none: stages are not balanced
};

}  // namespace mindpipe
