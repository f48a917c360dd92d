#include "operations/pictures.h"

#include "cuda/device/group.h"
#include "cuda/gpu_operations.h"

namespace mindpipe::cuda {
namespace {

template <class T>
__global__ void patch_groups(const std::uint8_t* pictures, PatchCall call, T* y, bool wide) {
  using A = Wide<T>;
  constexpr int size = lanes<T>;
  const PictureShape& p = call.picture;
  const int64_t cols = call.cols, across = p.width / p.side, area = p.side * p.side;
  for_row_group<size>(call.samples * call.rows, cols, wide, [&](int64_t n, int64_t j, auto ending) {
    const int64_t sample = quotient(n, call.rows), patch = n - sample * call.rows - call.first_row;
    Group<A, size> numbers{};
    if (patch >= 0 && patch < call.patches) {
      const int64_t down = quotient(patch, across);
      const std::uint8_t* corner = pictures + sample * p.channels * p.height * p.width +
                                   down * p.side * p.width + (patch - down * across) * p.side;
#pragma unroll
      for (int k = 0; k < size; ++k) {
        if (!there(ending, k)) continue;
        const int64_t c = quotient(j + k, area), inside = j + k - c * area, i = quotient(inside, p.side);
        const std::uint8_t byte = corner[(c * p.height + i) * p.width + inside - i * p.side];
        numbers.x[k] =
            (static_cast<A>(byte) / A(255) - static_cast<A>(p.mean[c])) / static_cast<A>(p.deviation[c]);
      }
    }
    store(y + n * cols + j, numbers, ending);
  });
}

}  // namespace
}  // namespace mindpipe::cuda

namespace mindpipe {

using namespace cuda;

void GpuOperations::run(const PatchesOperands& o) {
  const PatchCall call = o.checked();
  with_number(dtype_index(o.y.dtype), [&]<class T>(T) {
    launch(stream(), grid_of_row_groups(call.samples * call.rows, o.y.cols(), lanes<T>), patch_groups<T>,
           o.pictures.as<std::uint8_t>(), call, o.y.data, aligned(o.y.data) && whole_rows<T>(o.y.cols()));
  });
}

}  // namespace mindpipe
