#include "cuda/device/flash.h"
#include "cuda/device/flash_forward.h"
#include "cuda/device/flash_launch.h"

namespace mindpipe::cuda {
namespace flash {
namespace {

/// Under a causal mask the last tiles see most: they start first.
template <class T, int width>
__global__ void __launch_bounds__(block_threads) forward_kernel(AttentionCall call, bool sixteens) {
  constexpr int rows = tile_rows<T, width>;
  forward_block<T, rows, width>(call, static_cast<int>(gridDim.x - 1 - blockIdx.x),
                                static_cast<int>(blockIdx.y), static_cast<int>(blockIdx.z), sixteens,
                                shared<ForwardTiles<T, rows, width>>());
}

template <class T>
cudaError_t forward(const AttentionCall& call, cudaStream_t stream) {
  cudaError_t answer = cudaSuccess;
  const bool sixteens = in_sixteens(call.q, call.width, sizeof(T)) &&
                        in_sixteens(call.k, call.width, sizeof(T)) &&
                        in_sixteens(call.v, call.width, sizeof(T));
  with_padded_width(call.width, [&](auto padded) {
    constexpr int width = decltype(padded)::value, rows = tile_rows<T, width>;
    answer = start<ForwardTiles<T, rows, width>>(forward_kernel<T, width>, (call.queries + rows - 1) / rows,
                                                 call.query_heads, call, sixteens, stream);
  });
  return answer;
}

}  // namespace
}  // namespace flash

cudaError_t flash_forward(const AttentionCall& call, bool bf16, cudaStream_t stream) {
  return bf16 ? flash::forward<flash::Bf16>(call, stream) : flash::forward<float>(call, stream);
}

}  // namespace mindpipe::cuda
