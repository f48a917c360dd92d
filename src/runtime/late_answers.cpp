#include "runtime/late_answers.h"

namespace mindpipe {

void LateAnswers::ask(std::span<const Tensor> numbers, Hear hear) {
  await([this] { return numbers_.has_room(); });
  hearers_.push_back(std::move(hear));
  numbers_.ask(numbers);
  progress();
}

/// Who hears may put more into the device's queues, whose hook comes by here again.
void LateAnswers::progress() {
  if (tells_) return;
  tells_ = true;
  while (numbers_.is_known()) {
    const Hear hear = std::move(hearers_.front());
    hearers_.pop_front();
    hear(numbers_.take());
  }
  tells_ = false;
}

void LateAnswers::finish() {
  await([this] { return numbers_.open() == 0; });
}

template <class Condition>
void LateAnswers::await(const Condition& condition) {
  if (condition()) return;
  waiting_.until(
      [&] {
        progress();
        return condition();
      },
      [] { return std::string("the device, whose answers are behind"); });
}

}  // namespace mindpipe
