#pragma once
#include <cstdint>
#include <limits>

#include "backend.h"
#include "core/memory.h"

namespace mindpipe::testing {

/// Fills what an arena has had in use, and has no more, with what no sum survives.
inline void spoil(Backend& backend, Arena& arena) {
  const std::size_t mark = arena.mark();
  const auto numbers = static_cast<std::int64_t>((arena.peak() - mark) / sizeof(float));
  if (numbers > 0)
    backend.fill({arena.take({numbers}, DType::f32), std::numeric_limits<double>::quiet_NaN()});
  arena.release(mark);
}

}  // namespace mindpipe::testing
