#pragma once
#include "program/lists/forward_stretches.h"

namespace mindpipe {

/// Bytes of a boundary buffer: what travels forwards and what travels backwards lie there at different times.
std::int64_t bytes_of(const BoundaryBytes& buffer);

/// Lets the boundary buffers of forwards lie in those of `host`, the largest in the largest, so that a rank
/// that runs one program after the other needs the memory of the larger. Buffers that find no place are new.
void share_buffers(PlannedForwards& guest, const Placement& host);

}  // namespace mindpipe
