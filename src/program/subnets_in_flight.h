#pragma once
#include <cstdint>
#include <vector>

#include "program/simulate.h"
#include "supernet/subnet.h"

namespace mindpipe {

/// How far a subnet has come on one stage, and what its work there takes.
struct StageWork {
  std::int64_t forward = 0, backward = 0;  ///< nanoseconds of one micro-batch
  TensorSums forward_sums, backward_sums;  ///< inside that time
  std::int64_t update = 0, sum = 0;        ///< of all units; of their gradients' sum over data
  int missing = 0;                         ///< units that an older subnet has yet to update
  int arrived = 0, forwards = 0;           ///< micro-batches whose input is here; whose forward has begun
  int gradients = 0, backwards = 0;        ///< whose gradient is here; whose backward has begun
  int ended = 0;                           ///< whose backward has ended
  int slots = 0;                           ///< that were taken
  int slab = -1;
  bool updated = false;

  int slots_held() const { return slots - ended; }
};

/// The subnets that are known and have not ended, in order of ids, and the order in which they use units: a
/// list of users for each unit, so that a subnet may begin on a stage when it is first in all lists there.
class SubnetsInFlight {
 public:
  /// `first`: the subnet that is known first.
  SubnetsInFlight(const Outline& outline, const Link& over_data, std::int64_t first);

  void add(const Subnet& subnet);
  /// Notes that a subnet's units on a stage are updated.
  void note_update(std::int64_t id, int stage);
  /// Forgets those that have ended before the oldest that has not.
  void forget();

  std::int64_t oldest() const { return oldest_; }  ///< that has not ended
  std::int64_t known() const { return known_; }    ///< how many are known, those that have ended included
  StageWork& at(std::int64_t id, int stage) { return work_[(id - first_) * stages_ + stage]; }
  const StageWork& at(std::int64_t id, int stage) const { return work_[(id - first_) * stages_ + stage]; }
  /// Most units that a subnet uses in a block and shares with no other in flight.
  int most_units() const { return most_units_; }
  /// One of them; -1: it uses fewer.
  int unit(std::int64_t id, int block, int number) const {
    return uses_[((id - first_) * blocks_ + block) * most_units_ + number].unit;
  }
  /// Nanoseconds of the sum of a unit's gradient over data.
  std::int64_t sum_time(int unit) const { return over_data_.time(outline_.units[unit].gradients); }
  /// The slot of a micro-batch on a stage.
  int& slot(std::int64_t id, int stage, int micro_batch) {
    return slots_[((id - first_) * stages_ + stage) * micro_batches_ + micro_batch];
  }

 private:
  struct Use {
    int unit = -1;           ///< -1: there is none
    std::int64_t next = -1;  ///< the next subnet that uses it
  };
  struct User {
    std::int64_t id = -1;
    int block = 0, number = 0;
  };
  void add_use(std::int64_t id, int block, int number, int unit);
  Use& use(std::int64_t id, int block, int number) {
    return uses_[((id - first_) * blocks_ + block) * most_units_ + number];
  }

  const Outline& outline_;
  Link over_data_;
  int stages_, micro_batches_, blocks_, most_units_ = 1;
  std::vector<int> stage_of_;  ///< of each block
  std::vector<User> newest_;   ///< of each unit
  std::int64_t first_, known_, oldest_;
  std::vector<StageWork> work_;   ///< [subnet][stage]
  std::vector<int> slots_;        ///< [subnet][stage][micro-batch]
  std::vector<Use> uses_;         ///< [subnet][block][number]
  std::vector<int> stages_left_;  ///< of each subnet: that have yet to update
};

}  // namespace mindpipe
