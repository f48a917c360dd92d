#pragma once
#include <cuda_runtime.h>

#include "operations/calls.h"

/// Starts kernels on operands that have been checked. `type` is the dtype: f64, f32, bf16.
namespace mindpipe::cuda {

struct NormCall {
  bool rms;
  const void *gain, *offset;
  double epsilon;
  void *statistics, *y;
  std::int64_t rows, cols;
};
void norm(int type, const void* x, const NormCall& call, cudaStream_t stream);
/// `sum` = x + dropout(branch + bias), and its norm.
void residual_norm(int type, const void* x, const void* branch, const void* bias, const MaskRows& mask,
                   void* sum, const NormCall& call, cudaStream_t stream);
void norm_backward_input(int type, bool rms, const void* dy, const void* x, const void* gain,
                         const void* statistics, const void* residual, void* dx, std::int64_t rows,
                         std::int64_t cols, cudaStream_t stream);

/// Workspace that sums over rows need at least; with more they take fewer passes.
std::size_t column_sums_workspace(const RowParts& shape);
/// db[parts, cols] += column sums of dy
void column_sums(int type, const void* dy, void* db, const RowParts& shape, void* workspace,
                 std::size_t bytes, cudaStream_t stream);
/// dgain += column sums of dy (x - mean) / deviation, doffset (may be none) += those of dy
void norm_backward_parameters(int type, const void* dy, const void* x, const void* statistics, void* dgain,
                              void* doffset, const RowParts& shape, void* workspace, std::size_t bytes,
                              cudaStream_t stream);

/// Sums of chunks of rows, [parts, chunks, columns] each, and the first `outputs` totals that they are added
/// to.
struct NormChunks {
  float *sums[3], *totals[3];
  int outputs;
  std::int64_t chunks;
};
/// Adds the chunks of `parts` parts from first_part on, which alone are there, to their rows of the totals.
void add_norm_chunks(const NormChunks& of, const RowParts& shape, std::int64_t first_part, std::int64_t parts,
                     cudaStream_t stream);

/// What both gradients of a norm read and write.
struct NormBackwardCall {
  bool rms;
  const void *dy, *x, *gain, *statistics, *residual;
  void *dx, *dgain, *doffset, *dbias;  ///< the last two may be none
};
/// Both gradients, in one pass over rows of at most most_norm_columns, else one after the other.
void norm_backward(int type, const NormBackwardCall& call, const RowParts& shape, void* workspace,
                   std::size_t bytes, cudaStream_t stream);

inline constexpr int widest_rotary = 512;  ///< width of a head
/// The frequency of each pair of a head.
struct Frequencies {
  double of[widest_rotary / 2];
};
/// Heads [first, first + count) of [n, heads, width]; the position of row n is first_position + n mod rows.
struct RotaryCall {
  void* data;
  std::int64_t n, rows, heads, first, count, width, first_position;
  bool inverse;
};
void rotary(int type, const RotaryCall& call, const Frequencies& frequencies, cudaStream_t stream);

}  // namespace mindpipe::cuda
