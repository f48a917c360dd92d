#pragma once
#include <string>

#include "app/train/trace_clock.h"
#include "runtime/worker.h"

namespace mindpipe {

/// Writes the last recorded steps of all ranks to `path`, as a Chrome trace; of a supernet, at a drain, its
/// last subnets. Collective; world rank 0 writes.
void write_trace(Worker& worker, const std::string& path);

/// Where a run directory has its trace for people, and that for `replay`.
std::string trace_of(const std::string& run);
std::string replayable_trace_of(const std::string& run);

/// Takes away what an earlier start has left of its last steps: if this one is killed, nobody takes them for
/// its own. For rank 0, before it trains.
void forget_traces(const std::string& run);

/// Writes the last recorded steps of all ranks with the program that they ran to `path`, for `replay`.
/// `injected`: the faults that were asked for; `clock`: this rank's. Collective. False: there is nothing to
/// write, or it failed, which rank 0 says.
bool write_replayable_trace(Worker& worker, const std::string& injected, const std::string& path,
                            const TraceClock& clock = {});

}  // namespace mindpipe
