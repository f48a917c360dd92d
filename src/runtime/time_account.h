#pragma once
#include "program/action.h"
#include "trace/summary.h"

namespace mindpipe {

/// Where the work of actions of a kind is booked.
std::int64_t& work_of(TimeSpent& spent, ActionKind kind);
/// Where the time is booked that an action of the compute queue waits inside for other ranks.
std::int64_t& wait_inside(TimeSpent& spent, ActionKind kind);
/// Where the time is booked that the compute queue waits for an action of another queue.
std::int64_t& wait_for(TimeSpent& spent, ActionKind awaited);
/// Where the time is booked that the compute queue waits before an action of a subnet.
std::int64_t& wait_because(SubnetWaits& waits, WaitReason reason);

}  // namespace mindpipe
