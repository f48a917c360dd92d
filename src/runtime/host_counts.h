#pragma once
#include "trace/recorder.h"

namespace mindpipe {

/// What the system has counted of this thread so far; `outside` is the time now, `migrations` the processor
/// that it runs on. What the system does not count is 0.
HostCounts host_counts_now();

/// What came between two of these; `before`: when the step before had ended.
HostCounts counts_between(const HostCounts& start, const HostCounts& end, std::int64_t before);

}  // namespace mindpipe
