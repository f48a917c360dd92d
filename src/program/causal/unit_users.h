#pragma once
#include <cstdint>
#include <vector>

#include "program/outline.h"

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

/// The order in which subnets in flight use the units that they do not share: for each unit a list of users,
/// so that a subnet may begin on a stage when it is first in all lists there, and where units live: on the
/// rank where the last of these users runs.
class UnitUsers {
 public:
  /// `first`: the subnet that comes first.
  UnitUsers(const Outline& outline, std::int64_t first);

  /// Makes room for the uses of the subnet that comes next.
  void add_subnet();
  /// Notes that the newest subnet uses a unit on a rank. True: it has to wait until an older subnet has
  /// updated the unit, or until that has come.
  bool add_use(std::int64_t id, int block, int number, int unit, int rank);
  /// Notes that a subnet's units in blocks [first, last) are updated on a rank. Calls free(next) for each of
  /// them whose next user runs there too, and see(move) for each of the next users' moves that misses none
  /// any more.
  template <class Free, class See>
  void note_update(std::int64_t id, int first, int last, int rank, const Free& free, const See& see);
  /// A subnet's moves that miss no update, one from each rank to each of its own.
  std::vector<UnitMove> ready_moves(std::int64_t id) const;
  /// All units that were used since the last call, each from the rank of its last user to every other of its
  /// home's ranks: as if none had been used before. Nothing may be in flight. `next`: the subnet that comes
  /// first behind it.
  std::vector<UnitMove> bring_home(std::int64_t next);
  /// Forgets the uses of subnets before `oldest`.
  void forget(std::int64_t oldest);

  /// Most units that a subnet uses in a block and shares with no other in flight.
  int most_units() const { return most_units_; }
  /// One of them; -1: it uses fewer.
  int unit(std::int64_t id, int block, int number) const {
    return uses_[((id - first_) * blocks_ + block) * most_units_ + number].unit;
  }
  /// Units that a subnet uses in blocks [first, last) and shares with no other in flight, ascending.
  std::vector<int> units(std::int64_t id, int first, int last) const;

 private:
  struct Use {
    int unit = -1;           ///< -1: there is none
    bool updated = false;    ///< by its user
    std::int64_t next = -1;  ///< the next subnet that uses it
    int next_rank = -1;      ///< the rank of that use
  };
  struct User {
    std::int64_t id = -1;
    int block = 0, number = 0, rank = 0;
  };
  void add_move(std::int64_t id, int unit, const User& user, int to, bool waits);
  UnitMove& move(std::int64_t id, int unit, int from);
  Use& use(std::int64_t id, int block, int number) {
    return uses_[((id - first_) * blocks_ + block) * most_units_ + number];
  }

  const Outline& outline_;
  int blocks_, most_units_ = 1;
  std::int64_t first_;
  std::vector<User> newest_;                  ///< newest user by unit, since the last drain
  std::vector<Use> uses_;                     ///< [subnet][block][number]
  std::vector<std::vector<UnitMove>> moves_;  ///< [subnet]
};

template <class Free, class See>
void UnitUsers::note_update(std::int64_t id, int first, int last, int rank, const Free& free,
                            const See& see) {
  for (int block = first; block < last; ++block)
    for (int number = 0; number < most_units_; ++number) {
      Use& used = use(id, block, number);
      used.updated = true;
      if (used.next < 0) continue;
      if (used.next_rank == rank) {
        free(used.next);
        continue;
      }
      UnitMove& next = move(used.next, used.unit, rank);
      if (--next.waiting == 0) see(next);
    }
}

}  // namespace mindpipe
