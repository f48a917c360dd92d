#pragma once
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "program/make_program.h"

namespace mindpipe {

/// How long the message or sum of each action of a rank's list takes on paper; of a pass, its tensor sums
/// together, or all of it where it is priced.
inline std::vector<std::int64_t> times_on_paper(const PlannedStep& plan, int rank, bool priced = false) {
  const std::vector<Action>& list = plan.program.ranks[rank];
  std::vector<std::int64_t> times;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Span& span = plan.expected.spans[rank][i];
    times.push_back(list[i].sums > 0 && !priced ? plan.network.tensor_time(list[i]) : span.end - span.start);
  }
  return times;
}

/// Lets what a counted memory only imitates take the time that the simulator says: messages and sums are
/// empty there. Elsewhere it paces nothing.
class Pacer {
 public:
  /// Whose time a pass's is: its tensor sums', which pass behind its operations, or that of all of it.
  enum class Passes : std::uint8_t { their_sums, whole };

  Pacer() = default;
  /// `vary`, unless none, makes other times of those on paper, once for each action.
  explicit Pacer(Passes passes, std::function<std::int64_t(std::int64_t)> vary = {})
      : paces_(true), passes_(passes), vary_(std::move(vary)) {}
  /// Goes on over a list that has lost its first `dropped` actions and has others behind.
  void grow(const std::vector<std::int64_t>& more, std::size_t dropped) {
    times_.erase(times_.begin(), times_.begin() + static_cast<std::ptrdiff_t>(dropped));
    for (const std::int64_t time : more) times_.push_back(vary_ ? vary_(time) : time);
  }
  bool paces() const { return paces_; }
  bool times_whole_passes() const { return passes_ == Passes::whole; }
  /// How long an action takes: a message or sum, or a pass as far as it is timed.
  std::int64_t time_of(int action) const { return times_[action]; }

 private:
  bool paces_ = false;
  Passes passes_ = Passes::whole;
  std::vector<std::int64_t> times_;
  std::function<std::int64_t(std::int64_t)> vary_;
};

}  // namespace mindpipe
