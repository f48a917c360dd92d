#pragma once
#include <cstdint>
#include <vector>

#include "program/causal/own_cuts.h"
#include "program/causal/unit_users.h"
#include "program/clock/prices.h"
#include "supernet/subnet.h"

namespace mindpipe {

/// How far a subnet has come on one stage, and what its work there takes.
struct StageProgress {
  PassWork forward, backward;  ///< passes of one micro-batch
  UpdateWork update;
  int sums_left = 0;  ///< over data, of its units' gradients
  int missing = 0;    ///< units that an older subnet has yet to update, or that have yet to arrive
  int arrived = 0, forwards = 0;     ///< micro-batches whose input is here; whose forward has begun
  int gradients = 0, backwards = 0;  ///< whose gradient is here; whose backward has begun
  int ended = 0;                     ///< whose backward has ended
  int slots = 0;                     ///< slots that were taken
  int slab = -1;
  bool updated = false;

  int slots_held() const { return slots - ended; }
};

/// The subnets that are known and have not ended, in order of ids, and how far each has come on its stages. A
/// subnet has one rank of each stage.
class SubnetsInFlight {
 public:
  /// `first`: the subnet that is known first.
  SubnetsInFlight(const Outline& outline, const PriceList& prices, std::int64_t first);

  void add(const Subnet& subnet);
  /// Notes whether no subnet follows those that are known, before a drain.
  void close(bool is_closed) { is_closed_ = is_closed; }
  bool is_closed() const { return is_closed_; }
  /// Notes that a subnet's units on a rank are updated, and calls see(move) for each of the next users' moves
  /// that misses none any more.
  template <class See>
  void note_update(std::int64_t id, int rank, const See& see);
  /// Forgets those that have ended before the oldest that has not.
  void forget();

  std::int64_t oldest() const { return oldest_; }  ///< the oldest subnet that has not ended
  /// The oldest subnet of a lane that has not ended; it may not be known yet.
  const std::int64_t& oldest_of_lane(int lane) const { return oldest_of_lane_[lane]; }
  std::int64_t known() const { return known_; }  ///< how many are known, those that have ended included
  StageProgress& at(std::int64_t id, int rank) { return work_[(id - first_) * stages_ + stage_of_[rank]]; }
  const StageProgress& at(std::int64_t id, int rank) const {
    return work_[(id - first_) * stages_ + stage_of_[rank]];
  }
  /// The blocks [first, last) that a subnet runs on a rank.
  int first_block(std::int64_t id, int rank) const { return cuts_[cut(id) + stage_of_[rank]]; }
  int last_block(std::int64_t id, int rank) const { return cuts_[cut(id) + stage_of_[rank] + 1]; }
  /// Who uses which unit, in which order, and where the units live.
  UnitUsers& users() { return users_; }
  const UnitUsers& users() const { return users_; }
  /// The slot of a micro-batch on a rank.
  int& slot(std::int64_t id, int rank, int micro_batch) {
    return slots_[((id - first_) * stages_ + stage_of_[rank]) * micro_batches_ + micro_batch];
  }

 private:
  void end_stage(std::int64_t id);
  std::int64_t cut(std::int64_t id) const { return (id - first_) * (stages_ + 1); }

  const Outline& outline_;
  OwnCuts own_cuts_;
  const PriceList& prices_;
  UnitUsers users_;
  int stages_, micro_batches_;
  std::vector<int> stage_of_;  ///< stage of each rank
  std::int64_t first_, known_, oldest_;
  bool is_closed_ = false;
  std::vector<std::int64_t> oldest_of_lane_;
  std::vector<StageProgress> work_;  ///< [subnet][stage]
  std::vector<int> slots_;           ///< [subnet][stage][micro-batch]
  std::vector<int> stages_left_;     ///< for each subnet, stages that have yet to update
  std::vector<int> cuts_;            ///< [subnet][stage, and the end]: its first block
};

template <class See>
void SubnetsInFlight::note_update(std::int64_t id, int rank, const See& see) {
  at(id, rank).updated = true;
  users_.note_update(
      id, first_block(id, rank), last_block(id, rank), rank,
      [&](std::int64_t next) { --at(next, rank).missing; }, see);
  end_stage(id);
}

}  // namespace mindpipe
