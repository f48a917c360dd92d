#pragma once
#include <deque>
#include <map>
#include <vector>

#include "program/causal/subnet_rules.h"
#include "program/check/reading.h"
#include "supernet/subnet.h"

namespace mindpipe {

/// Follows the units of subnets on one rank: for each F.. B.. U in increasing ids of the subnets that use it
/// (unless the order is another one), each in the version that all older users have left, which lives on one
/// rank at a time and moves there in time; an update for all sums of its gradients, which lie in a slab of
/// their own.
class SubnetBook {
 public:
  SubnetBook(Reading& reading, const SubnetRules& rules, std::int64_t first);

  /// A subnet may come from now on; `cut`: the first block of each stage, and the end.
  void know(const Subnet& subnet, const std::vector<int>& cut);
  /// No unit moves for a subnet before.
  void forget(std::int64_t oldest);
  /// The action runs in the compute queue, for whomever.
  void see_computing() { computed_ = reading_.here(); }
  void see();
  /// Here nothing may be open, and units are at home.
  void end();

 private:
  static constexpr std::int64_t gone = -1;
  /// A unit that a subnet uses, and how many older ones do.
  struct Use {
    int unit = 0, block = 0;
    std::int64_t version = 0;
    ListEntry added = {};   ///< the last backward of its block
    ListEntry summed = {};  ///< the last part of its sum over data
  };
  /// Where the newest state of a unit is.
  struct Held {
    std::int64_t version = 0;  ///< version that is here; gone: on another rank
    std::int64_t users = 0;    ///< users among all known subnets
    ListEntry touched;         ///< newest update or departure here
  };
  struct OpenSubnet {
    std::vector<Use> uses = {};           ///< but for what all share
    std::vector<ListEntry> arrived = {};  ///< the last parts of what has moved here for it
    int first = 0, last = 0;              ///< blocks of the subnet here
    int backwards = 0, slab = -1;
  };

  OpenSubnet* known();
  void pass(OpenSubnet& open);
  void backward(OpenSubnet& open);
  void reduce(OpenSubnet& open);
  void update(OpenSubnet& open);
  void require_versions(const OpenSubnet& open);
  void move();
  void moves_unit(int unit, bool goes_home, bool is_last);
  void leaves(bool goes_home, bool is_last);
  std::int64_t version_for(std::int64_t subnet, int unit) const;
  void leave_home();

  Reading& reading_;
  const SubnetRules rules_;
  const int stage_;
  const bool moves_;
  std::vector<Held> held_;                   ///< one for each unit
  std::deque<std::vector<Use>> moving_;      ///< units by subnet, as long as they may move for it
  std::int64_t first_moving_;                ///< the subnet of the first of them
  std::map<std::int64_t, OpenSubnet> open_;  ///< one for each subnet that has not updated
  std::map<int, std::int64_t> slabs_;        ///< whose gradients are in it
  ListEntry left_;                           ///< the last part of the newest move from here
  ListEntry computed_;                       ///< what stands last in the compute queue
  std::int64_t updated_;                     ///< subnets
};

}  // namespace mindpipe
