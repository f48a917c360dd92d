#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "backend.h"
#include "comm/waiting.h"
#include "core/memory.h"

namespace mindpipe {

/// Tells the host numbers that are made on the device, question by question, in the order of asking: at once
/// where the host may read the device's memory, elsewhere through a ring of pinned memory, once the device
/// has come so far.
class LateAnswers {
 public:
  using Hear = std::function<void(std::span<const double> numbers)>;
  static constexpr std::size_t most_open = 16;  ///< questions

  /// `pinned`: none where the host may read the backend's memory. `most` numbers a question.
  LateAnswers(Backend& backend, Waiting& waiting, Memory* pinned, std::int64_t most);

  /// Asks for numbers (f64), behind what is in the compute queue. Asking does not look at the device, unless
  /// so many answers are open that it has to wait for the oldest.
  void ask(std::span<const Tensor> numbers, Hear hear);
  /// Lets those hear whose answers are known.
  void progress();
  /// Waits until no more than `left` answers are open; the newest of them are not looked at.
  void settle(std::size_t left = 0);

 private:
  struct Question {
    Hear hear;
    std::int64_t count = 0;
    std::uint64_t event = 0;
    std::vector<double> numbers = {};  ///< where they need no pinned memory
  };
  bool is_late() const { return !ring_.empty(); }
  bool is_known() const { return !is_late() || backend_.finished(open_.front().event); }
  void tell();

  Backend& backend_;
  Waiting& waiting_;
  Arena arena_;
  std::vector<Tensor> ring_;
  std::deque<Question> open_;
  std::size_t asked_ = 0;
  bool tells_ = false;
};

}  // namespace mindpipe
