#pragma once
#include <array>
#include <map>
#include <vector>

#include "program/causal/subnet_rules.h"
#include "program/check/reading.h"

namespace mindpipe {

/// Follows what all subnets share on one rank: it is read in the version of two windows before, in one of two
/// copies. What a window's subnets add is summed over data, goes to all other ranks of use once the last of
/// them has passed, and is applied when all have come, where nobody reads any more.
class WindowBook {
 public:
  /// `first`: the subnet that the list begins with.
  WindowBook(Reading& reading, const SubnetRules& rules, std::int64_t first);

  /// Subnets below are known.
  void know(std::int64_t subnets) { known_ = subnets; }
  /// Whether an action is of what all share.
  bool is_of_shared(const Action& action) const;
  /// `ends_pass`: whether a pass has come to its end with the action.
  void see(bool ends_pass);
  /// Here no window may be open.
  void end();

 private:
  /// What is exchanged of one unit in one window; of parts the last.
  struct Exchange {
    ListEntry summed;
    std::map<int, ListEntry> sent = {}, received = {};  ///< to and from ranks
    bool is_applied = false;
  };
  struct Window {
    std::int64_t passed = 0;  ///< subnets
    ListEntry last_backward;
    std::map<int, Exchange> units = {};
  };

  void pass(bool ends);
  void exchange(Window& window);
  void update(Window& window);
  void require_all(const Exchange& unit);
  std::int64_t size_of(std::int64_t window, int lane) const;

  Reading& reading_;
  const SubnetRules rules_;
  std::vector<int> shared_;          ///< units, of this rank
  const std::int64_t first_window_;  ///< there was none before that is read here
  std::int64_t applied_ = 0, known_ = 0;
  std::map<std::int64_t, Window> windows_;
  std::array<ListEntry, 2> applied_at_;  ///< the last update of the newest two windows
};

}  // namespace mindpipe
