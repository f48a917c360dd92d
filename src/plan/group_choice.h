#pragma once
#include <functional>
#include <optional>

#include "program/make_program.h"

namespace mindpipe {

/// Groups of an elastic schedule that are worth trying where `given` leaves them open: p, twice as many, as
/// many as gathers last under forwards or sums under backwards, in multiples of p, and all; of steps that are
/// not long all sizes. Of small steps with at most four times p micro-batches all groups in multiples of p.
std::vector<MicroBatchGroups> groups_to_try(const Outline& outline, const Network& network,
                                            const MicroBatchGroups& given);

/// Whether the tapes of an order may fit, by what is known of blocks alone; null: all do.
using OrderMayFit = std::function<bool(const Order&)>;

/// How long a step takes with the fastest of these groups that may fit and all the rooms that it could use;
/// none: none of them may.
std::optional<std::int64_t> fastest_of_groups(const Outline& outline, const Network& network,
                                              const MicroBatchGroups& given,
                                              const OrderMayFit& may_fit = nullptr);

/// Groups between which steps and tapes are traded, `most` of them: the fastest of those with the fewest
/// tapes, then those that are faster by one percent or more and have more tapes.
std::vector<MicroBatchGroups> groups_worth_tapes(const Outline& outline, const Network& network,
                                                 const MicroBatchGroups& given, std::size_t most);

/// Whether groups are taken. `fastest`: the step of the fastest that are left, with all the rooms that it
/// could use.
using TakeGroups = std::function<bool(const MicroBatchGroups& groups, std::int64_t fastest)>;

/// Chooses what `given` leaves open: the shortest step by the simulator among those that fit; of those within
/// half a percent of it, since bounded rooms may cost as much again, the one with the fewest tapes. Where
/// nothing fits, the one with the fewest tapes. `take`: asked of those that may fit, one after the other;
/// null: takes the first.
MicroBatchGroups choose_groups(const Outline& outline, const Network& network, const MicroBatchGroups& given,
                               const TakeGroups& take = nullptr, const OrderMayFit& may_fit = nullptr);

}  // namespace mindpipe
