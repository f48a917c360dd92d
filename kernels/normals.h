#pragma once
#include <cstdint>

#include "core/random.h"

namespace mindpipe {

/// RandomStream::normals, bit for bit, many at once: a large model's weights are drawn in a second.
void draw_normals(const RandomStream& stream, std::uint64_t first, std::uint64_t count, float deviation,
                  float* out);

}  // namespace mindpipe
