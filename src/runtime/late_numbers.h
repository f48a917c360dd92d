#pragma once
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "backend.h"
#include "core/memory.h"

namespace mindpipe {

/// How the host learns a few numbers that are made on the device, question after question: at once where it
/// may read its memory; elsewhere from a ring of pinned memory once the device has come so far.
class LateNumbers {
 public:
  /// `pinned`: none where the host may read the backend's memory. `most` numbers a question; `ring`: how many
  /// questions may be open where answers are late.
  LateNumbers(Backend& backend, Memory* pinned, std::int64_t most, std::size_t ring);

  /// Asks for numbers (f64), behind what is in the compute queue. `has_room`: whether one more may be asked.
  void ask(std::span<const Tensor> numbers);
  void ask(const Tensor& numbers) { ask({&numbers, 1}); }
  bool has_room() const { return !is_late() || open_.size() < ring_.size(); }
  /// How many questions were asked and not taken.
  std::size_t open() const { return open_.size(); }
  /// Whether the answer to the oldest can be taken without waiting.
  bool is_known() const { return !open_.empty() && (!is_late() || backend_.finished(open_.front().event)); }
  /// The answer to the oldest, which is known.
  std::vector<double> take();
  /// Whether answers come later than their questions.
  bool is_late() const { return !ring_.empty(); }

 private:
  struct Question {
    std::int64_t count = 0;
    std::uint64_t event = 0;
    std::vector<double> numbers = {};  ///< where they need no pinned memory
  };

  Backend& backend_;
  Arena arena_;
  std::vector<Tensor> ring_;
  std::deque<Question> open_;
  std::size_t asked_ = 0;
};

}  // namespace mindpipe
