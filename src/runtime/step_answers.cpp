#include "runtime/step_answers.h"

namespace mindpipe {

StepAnswers::StepAnswers(Backend& backend, Waiting& waiting, Memory* pinned)
    : backend_(backend), waiting_(waiting) {
  if (pinned == nullptr) return;
  arena_ = Arena(*pinned, MemoryClass::workspace, ring * bytes_for({Decision::places}, DType::f64));
  for (Tensor& slot : pinned_) slot = arena_.take({Decision::places}, DType::f64);
}

void StepAnswers::ask_decision(std::int64_t step, std::int64_t valid, const Tensor& decision) {
  ask(step, valid, decision, true);
}

void StepAnswers::ask_evaluation(std::int64_t step, std::int64_t valid, const Tensor& sums) {
  ask(step, valid, sums, false);
}

void StepAnswers::ask(std::int64_t step, std::int64_t valid, const Tensor& numbers, bool is_decision) {
  MP_CHECK(asked_ - told_ < ring, "the answers of {} steps are still to be taken", ring);
  const std::int64_t place = asked_++ % ring;
  Question& question = questions_[place];
  question.step = step;
  question.valid = valid;
  question.is_decision = is_decision;
  if (pinned_[place]) {
    backend_.copy(numbers, pinned_[place].range(0, numbers.count()));
    question.event = backend_.record(Queue::compute);
  } else {
    backend_.download(numbers, question.numbers.data());
  }
}

std::optional<StepScalars> StepAnswers::due() {
  const bool late = static_cast<bool>(pinned_[0]);
  return asked_ - told_ > (late ? 1 : 0) ? oldest() : std::nullopt;
}

std::optional<StepScalars> StepAnswers::oldest() {
  if (asked_ == told_) return std::nullopt;
  const std::int64_t place = told_++ % ring;
  const Question& question = questions_[place];
  if (pinned_[place])
    waiting_.until(
        [&] { return backend_.finished(question.event); },
        [&] { return fmt::format("the device to come to the end of step {}", question.step + 1); });
  const double* numbers = pinned_[place] ? pinned_[place].as<double>() : question.numbers.data();
  if (!question.is_decision) {
    StepScalars scalars{question.step, numbers[0], question.valid, 0, false};
    for (std::size_t i = 0; i < scalars.hits.size(); ++i)
      scalars.hits[i] = static_cast<std::int64_t>(numbers[1 + i]);
    return scalars;
  }
  return StepScalars{question.step, numbers[Decision::loss], question.valid, numbers[Decision::gradient_norm],
                     question.valid > 0 && numbers[Decision::skipped] == 0};
}

}  // namespace mindpipe
