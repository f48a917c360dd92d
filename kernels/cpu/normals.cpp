#include "normals.h"

#include "cpu/simd/random_kernels.h"

namespace mindpipe {

void draw_normals(const RandomStream& stream, std::uint64_t first, std::uint64_t count, float deviation,
                  float* out) {
  static const RandomKernels& kernels = MINDPIPE_PICK_KERNELS(choose_isa("auto"), random_kernels);
  const auto key = stream.key();
  kernels.normals({{key[0], key[1]}, stream.step, stream.sample}, normal_of, first, count, deviation, out);
}

}  // namespace mindpipe
