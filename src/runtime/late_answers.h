#pragma once
#include <deque>
#include <functional>
#include <span>

#include "comm/waiting.h"
#include "runtime/late_numbers.h"

namespace mindpipe {

/// Questions about numbers that are made on the device, each with who hears the answer: at once where the
/// host may read its memory, elsewhere as soon as the device has come so far, in the order of asking.
class LateAnswers {
 public:
  using Hear = std::function<void(std::span<const double> numbers)>;

  /// `pinned`: none where the host may read the backend's memory. `most` numbers a question.
  LateAnswers(Backend& backend, Waiting& waiting, Memory* pinned, std::int64_t most)
      : waiting_(waiting), numbers_(backend, pinned, most, most_open) {}

  /// Asks for numbers (f64), behind what is in the compute queue. Where too many answers are open, it waits
  /// for the oldest.
  void ask(std::span<const Tensor> numbers, Hear hear);
  /// Lets those hear whose answers are known.
  void progress();
  /// Waits for all answers.
  void finish();

 private:
  static constexpr std::size_t most_open = 16;  ///< questions
  template <class Condition>
  void await(const Condition& condition);

  Waiting& waiting_;
  LateNumbers numbers_;
  std::deque<Hear> hearers_;
  bool tells_ = false;
};

}  // namespace mindpipe
