#pragma once
#include <cstdint>
#include <vector>

#include "program/causal/own_cuts.h"
#include "program/clock/prices.h"
#include "supernet/subnet.h"

namespace mindpipe {

/// States of units that are to move, in one message, from the rank where their last users run to the rank of
/// the next one.
struct UnitMove {
  std::int64_t subnet = 0;  ///< the reader; behind a drain the first
  std::int64_t user = -1;   ///< the last of the units, or one of several
  int from = 0, to = 0;
  std::vector<int> units = {};  ///< ascending
  int waiting = 0;              ///< units that their last users have yet to update
};

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

/// The subnets that are known and have not ended, in order of ids, and the order in which they use units: a
/// list of users for each unit, so that a subnet may begin on a stage when it is first in all lists there,
/// and where units live: on the rank where the last of these users runs. A subnet has one rank of each stage.
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
  /// A subnet's moves that miss no update, one from each rank to each of its own.
  std::vector<UnitMove> ready_moves(std::int64_t id) const;
  /// All units that were used since the last call, each from the rank of its last user to every other of its
  /// home's ranks: as if none had been used before. Nothing may be in flight.
  std::vector<UnitMove> bring_home();
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
  /// Most units that a subnet uses in a block and shares with no other in flight.
  int most_units() const { return most_units_; }
  /// One of them; -1: it uses fewer.
  int unit(std::int64_t id, int block, int number) const {
    return uses_[((id - first_) * blocks_ + block) * most_units_ + number].unit;
  }
  /// Units that a subnet uses on a rank and shares with no other in flight, ascending.
  std::vector<int> units(std::int64_t id, int rank) const;
  /// The slot of a micro-batch on a rank.
  int& slot(std::int64_t id, int rank, int micro_batch) {
    return slots_[((id - first_) * stages_ + stage_of_[rank]) * micro_batches_ + micro_batch];
  }

 private:
  struct Use {
    int unit = -1;           ///< -1: there is none
    std::int64_t next = -1;  ///< the next subnet that uses it
    int next_rank = -1;      ///< the rank of that use
  };
  struct User {
    std::int64_t id = -1;
    int block = 0, number = 0, rank = 0;
  };
  void add_use(std::int64_t id, int block, int number, int unit, int rank);
  void add_move(std::int64_t id, int unit, const User& user, int to, bool waits);
  UnitMove& move(std::int64_t id, int unit, int from);
  void end_stage(std::int64_t id);
  std::int64_t cut(std::int64_t id) const { return (id - first_) * (stages_ + 1); }
  Use& use(std::int64_t id, int block, int number) {
    return uses_[((id - first_) * blocks_ + block) * most_units_ + number];
  }

  const Outline& outline_;
  OwnCuts own_cuts_;
  const PriceList& prices_;
  int stages_, micro_batches_, blocks_, most_units_ = 1;
  std::vector<int> stage_of_;  ///< stage of each rank
  std::vector<User> newest_;   ///< newest user by unit, since the last drain
  std::int64_t first_, known_, oldest_;
  bool is_closed_ = false;
  std::vector<std::int64_t> oldest_of_lane_;
  std::vector<StageProgress> work_;           ///< [subnet][stage]
  std::vector<int> slots_;                    ///< [subnet][stage][micro-batch]
  std::vector<Use> uses_;                     ///< [subnet][block][number]
  std::vector<int> stages_left_;              ///< for each subnet, stages that have yet to update
  std::vector<int> cuts_;                     ///< [subnet][stage, and the end]: its first block
  std::vector<std::vector<UnitMove>> moves_;  ///< [subnet]
};

template <class See>
void SubnetsInFlight::note_update(std::int64_t id, int rank, const See& see) {
  at(id, rank).updated = true;
  for (int block = first_block(id, rank); block < last_block(id, rank); ++block)
    for (int number = 0; number < most_units_; ++number) {
      const Use& used = use(id, block, number);
      if (used.next < 0) continue;
      if (used.next_rank == rank) {
        --at(used.next, rank).missing;
        continue;
      }
      UnitMove& next = move(used.next, used.unit, rank);
      if (--next.waiting == 0) see(next);
    }
  end_stage(id);
}

}  // namespace mindpipe
