#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "program/causal/own_cuts.h"
#include "program/causal/subnet_rules.h"
#include "program/lists/list_stretch.h"
#include "supernet/subnet.h"

namespace mindpipe {

/// Proves, stretch by stretch, that one rank's list keeps the rules of a supernet; says what is wrong, one
/// readable line each, empty when all is well.
///
/// Proved: for each unit F.. B.. U in increasing ids of the subnets that use it (unless the order is another
/// one), each in the version that all older users have left, which lives on one rank at a time; what all
/// share is read in the version of two windows before; every pass waits for its input, micro-batches ascend,
/// an update for all sums of its gradients; no slot, ring buffer or gradient slab is used again before its
/// last reader, a message included, has ended; tickets ascend; at a cut nothing is open.
class StretchCheck {
 public:
  /// `first`: the subnet that the list begins with, at a cut.
  StretchCheck(const Outline& outline, const SubnetRules& rules, int rank, std::int64_t first = 0);

  /// `more`: the subnets that the planner heard of with this stretch; `last`: it ends with a cut; `oldest`:
  /// no unit moves for a subnet before.
  std::vector<std::string> check(const ListStretch& stretch, std::span<const Subnet> more, bool last,
                                 std::int64_t oldest = 0);

 private:
  struct Slot {
    std::int64_t subnet = -1;
    int micro_batch = -1;
    std::int64_t forward = -1, backward = -1;
    std::array<std::int64_t, 2> received{-1, -1}, gradient{-1, -1};
    bool is_open = false;
  };
  /// A unit that a subnet uses, and how many older ones do.
  struct Ticket {
    int unit = 0;
    std::int64_t version = 0;
  };
  /// Where the newest state of a unit is.
  struct Holding {
    std::int64_t version = 0;   ///< that is here; gone: on another rank
    std::int64_t users = 0;     ///< of all subnets that are known
    std::int64_t touched = -1;  ///< its newest update or departure here
  };
  struct Work {
    std::vector<Ticket> units;        ///< that it uses here, but for those that all share
    std::vector<std::int64_t> moves;  ///< the last parts of what has arrived for it
    int first = 0, last = 0;          ///< its blocks here
    int forwards = 0, backwards = 0, slab = -1;
    std::int64_t last_backward = -1;
    std::map<int, std::int64_t> sums;  ///< of units: the last part, once it is there
  };
  struct Window {
    int passed = 0;
    std::int64_t last_backward = -1;
    std::map<int, std::int64_t> sums;  ///< of units: the last part over data, once it is there
    std::vector<std::int64_t> exchanged;
  };

  template <class... Parts>
  void wrong(fmt::format_string<Parts...> sentence, Parts&&... parts);
  bool waits_for(std::int64_t earlier) const;
  Slot& slot(int number);
  void forget_mirrors();
  void know(const Subnet& subnet);
  void require_versions(const Work& work);
  void check_parts();
  void move();
  void move_home();
  std::int64_t size_of_window(std::int64_t window) const;
  std::int64_t version_for(std::int64_t subnet, int unit) const;
  void see();
  void forward();
  void backward();
  void leaves(bool with_forward);
  void send();
  void receive();
  void reduce();
  void update();
  void shared_exchange();
  void shared_update();
  void check_shared();
  bool crosses(int cut, int payload, bool with_forward) const;

  const Outline& outline_;
  OwnCuts own_cuts_;
  SubnetRules rules_;
  static constexpr std::int64_t gone = -1;
  int rank_, stage_, lane_;
  bool shares_ = false, moves_;
  std::vector<Holding> held_;                ///< of each unit
  std::map<QueueKey, int> parts_;            ///< of moves on each channel: the part that is next
  std::deque<std::vector<Ticket>> tickets_;  ///< of each subnet that may have units moved for it
  std::int64_t first_ticket_;                ///< the subnet of the first of them
  std::map<std::int64_t, Work> work_;        ///< of subnets that have not updated
  std::vector<Slot> slots_;
  std::map<int, std::int64_t> slabs_;                                ///< whose gradients are in it
  std::array<std::array<std::array<std::int64_t, 2>, 2>, 2> sends_;  ///< [direction][buffer][payload]
  std::array<std::deque<std::int64_t>, 2> producers_;                ///< [direction]
  std::map<std::int64_t, Window> windows_;
  std::array<std::int64_t, 2> applied_at_{-1, -1};  ///< the last update of the newest two windows
  std::int64_t first_window_ = 0;                   ///< of the list: there was none before that is read here
  std::int64_t applied_ = 0, updated_, known_, newest_ticket_ = -1;
  std::int64_t begin_ = 0;
  const ListStretch* stretch_ = nullptr;
  int index_ = 0;
  std::vector<std::string> errors_;
};

}  // namespace mindpipe
