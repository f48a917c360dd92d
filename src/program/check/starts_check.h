#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "program/clock/task.h"
#include "program/outline.h"

namespace mindpipe {

/// Proves from a planner's starts, stretch by stretch, that what all ranks' lists say can run to the end:
/// each start comes behind the ends of all that it waits for, on its rank and on others. Such an order is a
/// witness that the lists stand still neither with free channels nor in the order of tickets.
class StartsCheck {
 public:
  /// `first`: the subnet that starts something first.
  explicit StartsCheck(const Outline& outline, std::int64_t first = 0);

  /// What is wrong, empty when all is well. `known`: subnets that the planner has heard of; `oldest`: the
  /// first of them that may still start something in this stretch.
  std::vector<std::string> check(std::span<const Task> starts, std::int64_t oldest, std::int64_t known);

 private:
  static constexpr std::int64_t never = -1;
  /// When each of these has ended, of a micro-batch on a stage.
  enum Step : std::uint8_t { forward, forward_arrival, backward, backward_arrival, steps };
  using Ends = std::array<std::int64_t, steps>;

  /// The time that is kept for a subnet which starts something, on the stage where it does.
  std::int64_t& of_stage(std::vector<std::int64_t>& times, const Task& start) {
    return times[(start.owner.number - first_) * outline_.stages + outline_.stage_of_rank(start.rank)];
  }
  Ends& ends(std::int64_t subnet, int rank, int micro_batch) {
    const std::int64_t stage = (subnet - first_) * outline_.stages + outline_.stage_of_rank(rank);
    return ends_[stage * outline_.micro_batches + micro_batch];
  }
  void see(const Task& start);
  void see_message(const Task& start);
  void see_update(const Task& start);
  void see_move(const Task& start);
  void require(bool holds, const Task& start, const char* what);
  void begin_on(std::int64_t& free, const Task& start, const char* what);
  std::int64_t& slot(int rank, int number);

  const Outline& outline_;
  std::int64_t first_;
  std::vector<Ends> ends_;                                  ///< [subnet][stage][micro-batch]
  std::vector<std::int64_t> summed_;                        ///< [subnet][stage]: the last sum over data
  std::vector<std::int64_t> arrived_;                       ///< [subnet][stage]: the last of its units
  std::vector<std::int64_t> rank_free_;                     ///< since when
  std::vector<std::array<std::int64_t, 2>> channel_free_;   ///< of each rank: forwards, backwards
  std::vector<std::vector<std::int64_t>> slot_free_;        ///< [rank][slot]
  std::vector<std::int64_t> unit_free_;                     ///< of each unit that moves: its newest update
  std::map<std::pair<int, int>, std::int64_t> moves_free_;  ///< from, to
  std::vector<std::string> errors_;
};

}  // namespace mindpipe
