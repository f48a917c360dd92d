#pragma once
#include <cstdint>

#include "cpu/isa.h"

namespace mindpipe {

/// Which words of which stream (core/random.h).
struct RandomWords {
  std::uint32_t key[2], step, sample;
};

struct RandomKernels {
  /// Deviates of elements [first, first + count); `tail` gives those that are rare.
  void (*normals)(const RandomWords& stream, float (*tail)(std::uint32_t), std::uint64_t first,
                  std::uint64_t count, float deviation, float* out);
};
MINDPIPE_DECLARE_KERNELS(RandomKernels, random_kernels)

}  // namespace mindpipe
