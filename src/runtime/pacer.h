#pragma once
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "program/clock/prices.h"
#include "program/make_program.h"

namespace mindpipe {

/// How long each action of a rank's list takes on paper where it meets no other: the time of a pass or an
/// update that an emulated device imitates.
std::vector<std::int64_t> times_on_paper(const PlannedStep& plan, const Outline& outline, int rank);

/// Lets passes take the time that they have on paper, where a device only imitates them, and knows when
/// actions ended in the time of that device: what comes after one begins then, however late the host sees it.
/// Elsewhere it paces nothing.
class Pacer {
 public:
  Pacer() = default;
  /// `vary`, unless none, makes other times of those on paper, once for each action.
  explicit Pacer(std::function<std::int64_t(std::int64_t)> vary) : paces_(true), vary_(std::move(vary)) {}
  static Pacer on_paper() {
    Pacer pacer;
    pacer.paces_ = true;
    return pacer;
  }
  /// Forgets the first `dropped` actions of a list; what came after them may begin when they had ended.
  void forget(const std::vector<Action>& list, std::size_t dropped);
  /// Goes on over a list that has more actions behind the others, which nobody knew of before.
  void grow(const std::vector<std::int64_t>& more);
  /// A list is run again.
  void again();
  bool paces() const { return paces_; }
  std::int64_t time_of(int action) const { return times_[action]; }

  /// When all has ended that an action comes after.
  std::int64_t ready(const Action& action, int index) const;
  void end(int index, std::int64_t time) { ended_[index] = time; }
  std::int64_t ended(int index) const { return ended_[index]; }

 private:
  bool paces_ = false;
  std::vector<std::int64_t> times_;
  std::vector<std::int64_t>
      not_before_;                   ///< when the host knew of each action, and what it came after had ended
  std::vector<std::int64_t> ended_;  ///< once it has
  std::function<std::int64_t(std::int64_t)> vary_;
};

}  // namespace mindpipe
