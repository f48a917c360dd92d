#include "cuda/device/padding.h"

#include "cuda/device/flash_tile.h"
#include "cuda/launch.h"

namespace mindpipe::cuda {
namespace {

using flash::Bf16;

/// Zeros from the sample's length on, a block for each row; `when_empty`: all of samples without a key.
__global__ void clear_rows(AttentionCall call, HeadsView view, std::int64_t heads, bool when_empty) {
  const int row = static_cast<int>(blockIdx.x), sample = static_cast<int>(blockIdx.y),
            length = flash::length_of(call, sample);
  if (when_empty ? length > 0 : row < length) return;
  Bf16* to = flash::row_of<Bf16>(view, call, sample, row, 0);
  for (std::int64_t i = threadIdx.x; i < heads * call.width; i += blockDim.x) to[i] = 0;
}

__global__ void clear_log_sums(AttentionCall call) {
  const int query = static_cast<int>(blockIdx.x), sample = static_cast<int>(blockIdx.y);
  if (flash::length_of(call, sample) > 0) return;
  for (int head = static_cast<int>(threadIdx.x); head < call.query_heads;
       head += static_cast<int>(blockDim.x))
    *flash::log_sum_of(call, sample, head, query) = 0;
}

__global__ void write_lengths(std::int32_t* lengths, std::int64_t samples, std::int32_t length) {
  const std::int64_t sample = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (sample < samples) lengths[sample] = length;
}

Grid rows_of(std::int64_t rows, const AttentionCall& call) { return {rows, 128, call.samples}; }

}  // namespace

void fill_lengths(std::int32_t* lengths, std::int64_t samples, std::int32_t length, cudaStream_t stream) {
  launch(stream, {blocks_for(samples, 128), 128}, write_lengths, lengths, samples, length);
}

void clear_empty_rows(const AttentionCall& call, cudaStream_t stream) {
  launch(stream, rows_of(call.queries, call), clear_rows, call, call.out, call.query_heads, true);
  launch(stream, rows_of(call.queries, call), clear_log_sums, call);
}

void clear_padded_gradients(const AttentionCall& call, cudaStream_t stream) {
  launch(stream, rows_of(call.queries, call), clear_rows, call, call.dq, call.query_heads, true);
  launch(stream, rows_of(call.keys, call), clear_rows, call, call.dk, call.key_heads, false);
  launch(stream, rows_of(call.keys, call), clear_rows, call, call.dv, call.key_heads, false);
}

}  // namespace mindpipe::cuda
