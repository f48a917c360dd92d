#pragma once
#include "program/lists/buffer_ring.h"

namespace mindpipe {

/// Bytes of a boundary buffer: what travels forwards and what travels backwards lie there at different times.
std::int64_t bytes_of(const BoundaryBytes& buffer);

/// Lets the boundary buffers of a rank's forwards, and their rings, lie in those of `host`, the largest in
/// the largest, so that a rank that runs one program after the other needs the memory of the larger. Buffers
/// that find no place are new.
void share_buffers(Rings& rings, std::vector<BoundaryBytes>& buffers, const std::vector<BoundaryBytes>& host);

}  // namespace mindpipe
