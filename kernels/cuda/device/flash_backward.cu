#include "cuda/device/flash.h"
#include "cuda/device/flash_backward.h"
#include "cuda/device/flash_launch.h"

namespace mindpipe::cuda {
namespace flash {
namespace {

template <class T, int width>
__global__ void __launch_bounds__(block_threads) query_kernel(AttentionCall call, bool sixteens) {
  constexpr int rows = tile_rows<T, width>;
  query_block<T, rows, width>(call, static_cast<int>(gridDim.x - 1 - blockIdx.x),
                              static_cast<int>(blockIdx.y), static_cast<int>(blockIdx.z), sixteens,
                              shared<BackwardTiles<T, rows, width>>());
}
/// Under a causal mask the first keys are seen most: they start first.
template <class T, int width>
__global__ void __launch_bounds__(block_threads) key_kernel(AttentionCall call, bool sixteens) {
  constexpr int rows = tile_rows<T, width>;
  key_block<T, rows, width>(call, static_cast<int>(blockIdx.x), static_cast<int>(blockIdx.y),
                            static_cast<int>(blockIdx.z), sixteens, shared<BackwardTiles<T, rows, width>>());
}

template <class T>
cudaError_t backward(const AttentionCall& call, cudaStream_t stream) {
  cudaError_t answer = cudaSuccess;
  bool sixteens = true;
  for (const HeadsView* view : {&call.q, &call.k, &call.v, &call.dout})
    sixteens = sixteens && in_sixteens(*view, call.width, sizeof(T));
  with_padded_width(call.width, [&](auto padded) {
    constexpr int width = decltype(padded)::value, rows = tile_rows<T, width>;
    using Tiles = BackwardTiles<T, rows, width>;
    answer = start<Tiles>(query_kernel<T, width>, (call.queries + rows - 1) / rows, call.query_heads, call,
                          sixteens, stream);
    if (answer == cudaSuccess)
      answer = start<Tiles>(key_kernel<T, width>, (call.keys + rows - 1) / rows, call.key_heads, call,
                            sixteens, stream);
  });
  return answer;
}

}  // namespace
}  // namespace flash

cudaError_t flash_backward(const AttentionCall& call, bool bf16, cudaStream_t stream) {
  return bf16 ? flash::backward<flash::Bf16>(call, stream) : flash::backward<float>(call, stream);
}

}  // namespace mindpipe::cuda
