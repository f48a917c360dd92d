#pragma once
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "program/causal/causal_planner.h"

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
  std::vector<std::array<std::int64_t, 2>> channel_free_;   ///< by rank: forwards, backwards
  std::vector<std::vector<std::int64_t>> slot_free_;        ///< [rank][slot]
  std::vector<std::int64_t> unit_free_;                     ///< newest update of each unit that moves
  std::map<std::pair<int, int>, std::int64_t> moves_free_;  ///< from, to
  std::vector<std::string> errors_;
};

inline StartsCheck::StartsCheck(const Outline& outline, std::int64_t first)
    : outline_(outline),
      first_(first),
      rank_free_(outline.ranks(), 0),
      channel_free_(outline.ranks()),
      slot_free_(outline.ranks()),
      unit_free_(outline.has_moves() ? outline.units.size() : 0, 0) {}

inline std::vector<std::string> StartsCheck::check(std::span<const Task> starts, std::int64_t oldest,
                                                   std::int64_t known) {
  const std::int64_t stages = outline_.stages, of_each = stages * outline_.micro_batches;
  ends_.erase(ends_.begin(), ends_.begin() + (oldest - first_) * of_each);
  summed_.erase(summed_.begin(), summed_.begin() + (oldest - first_) * stages);
  arrived_.erase(arrived_.begin(), arrived_.begin() + (oldest - first_) * stages);
  first_ = oldest;
  ends_.resize((known - first_) * of_each, {never, never, never, never});
  summed_.resize((known - first_) * stages, never);
  arrived_.resize((known - first_) * stages, never);
  errors_.clear();
  for (const Task& start : starts) {
    see(start);
  }
  return std::move(errors_);
}

inline void StartsCheck::require(bool holds, const Task& start, const char* what) {
  if (!holds)
    errors_.push_back(fmt::format("rank {}, at {} ns, micro-batch {} of subnet {}: {}", start.rank,
                                  start.start, start.micro_batch, start.owner.number, what));
}

/// What runs one after the other is free from the end of the one before on.
inline void StartsCheck::begin_on(std::int64_t& free, const Task& start, const char* what) {
  require(free <= start.start, start, what);
  free = start.end;
}

inline std::int64_t& StartsCheck::slot(int rank, int number) {
  std::vector<std::int64_t>& slots = slot_free_[rank];
  if (number >= static_cast<int>(slots.size())) slots.resize(number + 1, 0);
  return slots[number];
}

inline void StartsCheck::see(const Task& start) {
  const auto done = [&](std::int64_t end) { return end != never && end <= start.start; };
  constexpr std::int64_t taken = std::numeric_limits<std::int64_t>::max();
  const int stage = outline_.stage_of_rank(start.rank);
  const bool is_last = stage + 1 == outline_.stages;
  switch (start.kind) {
    case TaskKind::forward: {
      Ends& here = ends(start.owner.number, start.rank, start.micro_batch);
      begin_on(rank_free_[start.rank], start, "two things run at a time");
      if (stage > 0) require(done(here[forward_arrival]), start, "runs before its input is there");
      if (stage == 0) {
        require(slot(start.rank, start.slot) <= start.start, start, "takes a slot that is not free");
        slot(start.rank, start.slot) = taken;
      }
      require(of_stage(arrived_, start) <= start.start, start, "runs before its units have arrived");
      here[forward] = start.end;
      return;
    }
    case TaskKind::backward: {
      Ends& here = ends(start.owner.number, start.rank, start.micro_batch);
      begin_on(rank_free_[start.rank], start, "two things run at a time");
      require(done(here[is_last ? forward : backward_arrival]), start, "runs before its gradient is there");
      slot(start.rank, start.slot) = here[backward] = start.end;
      return;
    }
    case TaskKind::message:
      return see_message(start);
    case TaskKind::sum:
      if (start.owner.of == Owner::subnet) of_stage(summed_, start) = start.end;
      return;
    case TaskKind::move:
      return see_move(start);
    case TaskKind::update:
      return see_update(start);
    case TaskKind::exchange:
    case TaskKind::backward_input:
    case TaskKind::backward_weight:
    case TaskKind::gather:
    case TaskKind::scalars:
    case TaskKind::fetch:
    case TaskKind::evict:
    case TaskKind::stash:
    case TaskKind::unstash:
      return;
  }
}

inline void StartsCheck::see_message(const Task& start) {
  constexpr std::int64_t taken = std::numeric_limits<std::int64_t>::max();
  const int peer = start.peer;
  const Ends& here = ends(start.owner.number, start.rank, start.micro_batch);
  const std::int64_t made = here[start.with_forward ? forward : backward];
  require(made != never && made <= start.start, start, "is sent before it is made");
  begin_on(channel_free_[start.rank][start.with_forward ? 0 : 1], start, "two messages share a channel");
  Ends& there = ends(start.owner.number, peer, start.micro_batch);
  there[start.with_forward ? forward_arrival : backward_arrival] = start.end;
  if (!start.with_forward) return;
  require(slot(peer, start.slot) <= start.start, start, "arrives in a slot that is not free");
  slot(peer, start.slot) = taken;
}

/// Units leave once their last users have updated them, and one message after the other.
inline void StartsCheck::see_move(const Task& start) {
  begin_on(moves_free_[{start.rank, start.peer}], start, "two moves share a channel");
  require(!start.units.empty(), start, "moves no unit");
  for (const int unit : start.units)
    require(unit_free_[unit] <= start.start, start, "moves a unit that has yet to be updated");
  if (start.owner.of == Owner::drain) return;
  std::int64_t& arrived =
      arrived_[(start.owner.number - first_) * outline_.stages + outline_.stage_of_rank(start.peer)];
  arrived = std::max(arrived, start.end);
}

inline void StartsCheck::see_update(const Task& start) {
  begin_on(rank_free_[start.rank], start, "two things run at a time");
  if (start.owner.of == Owner::window) return;
  for (int k = 0; k < outline_.micro_batches; ++k) {
    const std::int64_t end = ends(start.owner.number, start.rank, k)[backward];
    require(end != never && end <= start.start, start, "is updated before its last backward");
  }
  require(of_stage(summed_, start) <= start.start, start, "is updated before its gradients are summed");
  for (const int unit : start.units) unit_free_[unit] = start.end;
}

}  // namespace mindpipe
