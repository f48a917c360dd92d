#pragma once
#include <string>
#include <vector>

#include "config/kinds.h"
#include "program/action.h"
#include "program/clock/simulate.h"
#include "program/outline.h"
#include "program/place.h"
#include "program/schedules/order_in_slab.h"

namespace mindpipe {

/// A program ready to run: the lists, the memory they need, and how long the simulator expects them to take.
struct PlannedStep {
  Program program;
  Placement placement;
  Timeline expected = {};
  Network network;            ///< network that it was planned for
  double proved_seconds = 0;  ///< time that the proof of its lists took
  std::string found_order;    ///< text of the order, where it was searched; empty where it was known
};

/// An order that an earlier start has searched, by its text (text_of_order). `path`: what sentences call it.
struct KnownOrder {
  std::string path, text;
};

/// Refuses a batch whose lists have about so many actions, or those of a schedule's step, if that is more
/// than can be planned.
void require_few_actions(const Outline& outline, double count);
void require_few_actions(const Outline& outline, ScheduleKind schedule);

/// Writes the step of an order in the fewest rooms that cost little; nobody has checked it yet.
PlannedStep plan_step(const Outline& outline, const Order& order, const Network& network = {});

/// Checks the lists of a step, which have to be sound; notes how long that took.
void prove(PlannedStep& step, const Outline& outline);

/// What a schedule is to order for an outline.
OrderRequest request_of(const Outline& outline, const MicroBatchGroups& groups = {});

/// The order of a schedule's step, with weight gradients where they are put off: closely fitted, or
/// roughly; orders that are searched closely.
Order order_of_step(const Outline& outline, ScheduleKind schedule, const Network& network,
                    const MicroBatchGroups& groups = {}, Fit fit = Fit::close);

/// Plans the step of a schedule and checks it. `groups`: where the schedule has some. `known`: taken in place
/// of a search that asks the same, or refused if it is unsound.
PlannedStep make_program(const Outline& outline, ScheduleKind schedule, const Network& network = {},
                         const MicroBatchGroups& groups = {}, const KnownOrder& known = {});

}  // namespace mindpipe
