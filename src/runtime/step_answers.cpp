#include "runtime/step_answers.h"

namespace mindpipe {

void StepAnswers::ask(std::int64_t step, std::int64_t valid, const Tensor& decision) {
  numbers_.ask(decision);
  questions_.push_back({step, valid});
}

std::optional<StepScalars> StepAnswers::due() {
  return questions_.size() > (numbers_.is_late() ? 1 : 0) ? oldest() : std::nullopt;
}

std::optional<StepScalars> StepAnswers::oldest() {
  if (questions_.empty()) return std::nullopt;
  const Question question = questions_.front();
  questions_.pop_front();
  waiting_.until([&] { return numbers_.is_known(); },
                 [&] { return fmt::format("the device to come to the end of step {}", question.step + 1); });
  const std::vector<double> numbers = numbers_.take();
  return StepScalars{question.step, numbers[Decision::loss], question.valid, numbers[Decision::gradient_norm],
                     question.valid > 0 && numbers[Decision::skipped] == 0};
}

}  // namespace mindpipe
