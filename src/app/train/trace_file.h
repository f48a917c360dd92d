#pragma once
#include <string>

#include "runtime/worker.h"

namespace mindpipe {

/// Writes the last recorded steps of all ranks to `path`, as a Chrome trace; of a supernet, at a drain, its
/// last subnets. Collective; world rank 0 writes.
void write_trace(Worker& worker, const std::string& path);

/// Writes the last recorded steps of all ranks with the program that they ran to `path`, for `replay`.
/// `injected`: the faults that were asked for. Collective. False: there is nothing to write, or it failed,
/// which rank 0 says.
bool write_replayable_trace(Worker& worker, const std::string& injected, const std::string& path);

}  // namespace mindpipe
