#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "program/clock/prices.h"
#include "program/lists/list_stretch.h"
#include "program/make_program.h"

namespace mindpipe {

/// The boundary buffers, by number, that the forwards of a rank take turns in when nothing goes back: those
/// that messages arrive in, and those that they leave from. (Chunks of one rank alone hand over in the
/// latter.)
struct ForwardRooms {
  std::vector<int> arriving, leaving;
};
/// What a rank needs of them: first those that messages arrive in, then the others.
std::vector<BoundaryBytes> forward_buffers(const Outline& outline, int rank);
/// The numbers of these buffers where none has another place.
ForwardRooms forward_rooms(const Outline& outline, int rank);

/// Writes the list of one rank through which batches go one behind the other, forwards alone: a program
/// without an end, which grows by whole batches. It is a function of the outline and of how many batches
/// there are: micro-batches go in order, with chunks in groups of as many as there are stages, each group
/// through all chunks of a rank before the next. The tickets of all ranks follow from the places in that
/// order.
class ForwardStretches {
 public:
  /// Begins where nothing is under way. `outline` stays as it is.
  ForwardStretches(const Outline& outline, const Network& network, ForwardRooms rooms, int rank);

  /// One more batch is to go through, by these candidates (none: the model has no choices). Its actions have
  /// its number, from 0 on.
  void add(const std::vector<std::uint8_t>& choice);
  /// What the list goes on with: all groups that are whole, and with `last` the rest too.
  ListStretch write(bool last);
  /// Whether all that was added can be written: whole groups.
  bool is_whole() const;
  /// Forwards of one batch on this rank.
  std::int64_t forwards_of_batch() const { return std::int64_t{outline_.chunks} * outline_.micro_batches; }

 private:
  using Places = std::vector<std::int64_t>;  ///< counted from the list's beginning
  struct Batch {
    std::vector<PassWork> works;  ///< forwards of each chunk here
  };
  /// A forward, what arrives for it or what leaves behind it, at its place in the order of all ranks.
  struct Entry {
    std::int64_t time = 0;  ///< in forwards, as if all took the same time and messages none
    int sender = -1;        ///< -1: the forward itself
    int loop = 0;           ///< which of this rank's chunks
    std::int64_t micro_batch = 0;
  };
  /// A buffer that a message has filled, or a forward.
  struct Filled {
    std::size_t buffer = 0;
    Places by;
  };

  int chunk_of(const Entry& entry) const { return entry.loop * outline_.stages + rank_; }
  bool is_alone() const { return outline_.stages == 1; }
  void write_group(std::int64_t micro_batches);
  void write(const Entry& entry);
  void forward(const Entry& entry);
  void arrive(const Entry& entry);
  void leave(const Entry& entry);
  Places messages(ActionKind kind, const Entry& entry, int cut, int peer, int buffer, const Places& after);
  Action action_at(ActionKind kind, const Entry& entry) const;
  std::int64_t add(Action action, const Places& after, std::int64_t time);

  const Outline& outline_;
  PriceList prices_;
  ForwardRooms rooms_;
  int rank_;
  std::deque<Batch> batches_;                          ///< that are not written to the end
  std::int64_t first_ = 0;                             ///< the number of the first of them
  std::int64_t known_ = 0, written_ = 0, groups_ = 0;  ///< micro-batches; groups that are written
  std::int64_t begin_ = 0;                             ///< actions before the stretch
  ListStretch stretch_;
  std::deque<Filled> arrived_, made_;  ///< and not read yet
  std::vector<Places> readers_;        ///< of each buffer of the rooms, arriving and then leaving: who read
                                       ///< what lay there last
  std::int64_t arrivals_ = 0, departures_ = 0;
};

/// The lists of all ranks through which so many batches go.
Program forward_program(const Outline& outline, const Network& network, int batches);

/// One batch alone, with the buffers that a program without an end has too.
struct PlannedForwards : PlannedStep {
  std::vector<ForwardRooms> rooms;  ///< of each rank
};
PlannedForwards plan_forwards(const Outline& outline, const Network& network);

/// How many scores, each of so many batches, have to be under way for every stage to have something to do.
std::int64_t scores_in_flight(const Outline& outline, std::int64_t batches);

}  // namespace mindpipe
