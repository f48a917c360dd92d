#pragma once
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "program/causal/subnets_in_flight.h"
#include "program/clock/clock.h"

namespace mindpipe {

/// What all subnets share, by windows of subnets: those of window w read the version that window w - 2 left.
/// Once all subnets of a window have passed a rank, what they add there is summed over data and goes to the
/// other ranks of use, and each of these updates when it has all.
class CausalWindows {
 public:
  /// `window`: subnets of one; 0: nothing is shared. `first`: the subnet that is known first.
  CausalWindows(const Outline& outline, const PriceList& prices, const SubnetsInFlight& subnets,
                std::int64_t window, std::int64_t first);

  /// Whether what all share is on a rank in the version that a subnet reads.
  bool has_version(std::int64_t id, int rank) const {
    return ranks_[rank].uses.empty() || ranks_[rank].applied + 1 >= id / window_;
  }
  /// A subnet's last backward on a rank has ended.
  void pass(std::int64_t id, int rank, Clock& clock);
  /// Whether a rank may update now; `update` says what.
  bool may_update(int rank, Task& update) const;
  /// A sum, an exchange or an update of a window has ended.
  void end(const Task& task, Clock& clock);
  /// No subnet follows: windows that are not full may be complete.
  void close(Clock& clock);

 private:
  /// A unit that all subnets share, on a rank that uses it.
  struct Use {
    int unit = -1, block = 0;     ///< the first of its blocks there
    std::vector<int> peers = {};  ///< other ranks that use it
  };
  struct Rank {
    std::vector<Use> uses;
    std::vector<std::int64_t> passed = {};  ///< subnets whose backwards have ended, by window
    std::vector<int> exchanged = {};        ///< sums that are here and exchanges that have ended, by window
    std::int64_t applied = 0;               ///< windows
    std::int64_t update = 0;                ///< nanoseconds
  };

  void find_uses();
  std::int64_t size(std::int64_t window, int lane) const;
  std::int64_t in_lane(int lane, std::int64_t first, std::int64_t count) const;
  int expected(std::int64_t window, int rank) const;
  void complete(std::int64_t window, int rank, Clock& clock);
  void exchange(std::int64_t window, int rank, const Use& use, Clock& clock);
  void put_exchanges(int from, int to, Clock& clock);
  void count(std::int64_t window, int rank, Clock& clock);

  const Outline& outline_;
  const PriceList& prices_;
  const SubnetsInFlight& subnets_;
  std::int64_t window_;
  std::vector<Rank> ranks_;
  std::map<std::pair<int, int>, std::deque<Task>> exchanges_;  ///< from, to: that may not begin yet
};

}  // namespace mindpipe
