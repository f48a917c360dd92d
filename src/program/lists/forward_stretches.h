#pragma once
#include <cstdint>
#include <deque>
#include <vector>

#include "program/clock/prices.h"
#include "program/lists/list_writer.h"
#include "program/make_program.h"

namespace mindpipe {

/// The boundary buffers that the forwards of a rank take turns in when nothing goes back: first those that
/// messages arrive in, then those that they leave from. (Chunks of one rank alone hand over in the latter.)
std::vector<BoundaryBytes> forward_buffers(const Outline& outline, int rank);
/// The numbers of these buffers where none has another place.
Rings forward_rings(const Outline& outline, int rank);

/// Writes the list of one rank through which batches go one behind the other, forwards alone: a program
/// without an end, which grows by whole batches. The order of its tasks needs no clock, since it is a
/// function of the outline and of how many batches there are: micro-batches go in order, with chunks in
/// groups of as many as there are stages, each group through all chunks of a rank before the next; in a V
/// batch by batch.
class ForwardStretches {
 public:
  /// Begins where nothing is under way. `outline` stays as it is.
  ForwardStretches(const Outline& outline, const Network& network, const Rings& rings, int rank);

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
  struct Batch {
    std::vector<PassWork> works;  ///< forwards of each chunk here
  };

  void write_group(std::int64_t micro_batches);
  void write_loops(std::int64_t micro_batches);
  void write_v(std::int64_t micro_batches);
  Task task_at(TaskKind kind, int chunk, std::int64_t micro_batch) const;
  void forward(int chunk, std::int64_t micro_batch);
  void message(int chunk, std::int64_t micro_batch);

  const Outline& outline_;
  PriceList prices_;
  int rank_;
  std::vector<int> chunks_;  ///< here
  ListWriter writer_;
  std::deque<Batch> batches_;             ///< batches that are not written to the end
  std::int64_t first_ = 0;                ///< the number of the first of them
  std::int64_t known_ = 0, written_ = 0;  ///< micro-batches
};

/// The lists of all ranks through which so many batches go.
Program forward_program(const Outline& outline, const Network& network, int batches);

/// One batch alone, with the buffers that a program without an end has too.
struct PlannedForwards : PlannedStep {
  std::vector<Rings> rings;  ///< one for each rank
};
/// `host`: the step in whose buffers these lie where they find a place; null: in their own.
PlannedForwards plan_forwards(const Outline& outline, const Network& network,
                              const Placement* host = nullptr);

/// How many scores, each of so many batches, have to be under way for every stage to have something to do.
std::int64_t scores_in_flight(const Outline& outline, std::int64_t batches);

}  // namespace mindpipe
