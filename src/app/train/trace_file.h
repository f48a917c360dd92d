#pragma once
#include <string>

#include "runtime/worker.h"

namespace mindpipe {

/// Writes the last recorded steps of all ranks to `path`, as a Chrome trace; of a supernet, at a drain, its
/// last subnets. Collective; world rank 0 writes.
void write_trace(Worker& worker, const std::string& path);

}  // namespace mindpipe
