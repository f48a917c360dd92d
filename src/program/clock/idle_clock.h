#pragma once
#include <algorithm>
#include <array>
#include <cstdint>

#include "program/action.h"

namespace mindpipe {

/// Nanoseconds by WaitReason.
using TimesByReason = std::array<std::int64_t, wait_reasons>;

/// Counts why a stage stands idle, on paper. Whoever decides what it runs says so each time that it finds
/// nothing.
class IdleClock {
 public:
  /// A decision begins: the time since the last one was idle for the reason that was found then.
  void look(std::int64_t now) {
    now_[static_cast<int>(reason_)] += now - since_;
    since_ = now;
    reason_ = WaitReason::input;
  }
  /// Nothing could begin because of this; what is said first counts.
  void because(WaitReason reason) {
    if (reason_ == WaitReason::input) reason_ = reason;
  }
  /// Something begins, and ends at `end`; gives back the reason of most of the idle time before it.
  WaitReason begin(std::int64_t end) {
    const auto most = std::max_element(now_.begin(), now_.end());
    const auto reason = static_cast<WaitReason>(most - now_.begin());
    for (int k = 0; k < wait_reasons; ++k) all_[k] += now_[k];
    now_ = {};
    since_ = end;
    reason_ = WaitReason::input;
    return reason;
  }
  /// What began ends now, whatever was expected.
  void end(std::int64_t now) { since_ = now; }
  /// Before all that has begun so far.
  const TimesByReason& all() const { return all_; }

 private:
  std::int64_t since_ = 0;
  WaitReason reason_ = WaitReason::input;
  TimesByReason now_{}, all_{};
};

}  // namespace mindpipe
