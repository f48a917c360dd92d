#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "operations/calls.h"

/// Starts kernels on operands that have been checked. `type` is the dtype: f64, f32, bf16.
namespace mindpipe::cuda {

/// A table [rows, cols] whose first row is token `first_row`; the token `dropped` adds nothing to gradients.
struct TableShape {
  std::int64_t rows, cols, first_row, dropped = -1;
};
/// y[n] = table[tokens[n]], zeros where that is no row; elements of `size` bytes (2, 4 or 8).
void embedding(int size, const std::int32_t* tokens, const void* table, const TableShape& shape, void* y,
               std::int64_t n, cudaStream_t stream);

/// Rows of [samples, rows, cols] beside positions [first, first + rows) of a table.
struct PositionCall {
  std::int64_t samples, rows, cols, first;
};
void add_positions(int type, const void* x, const void* positions, const PositionCall& call, void* y,
                   cudaStream_t stream);
void add_sinusoids(int type, const void* x, const SinusoidCall& call, void* y, cudaStream_t stream);
void positions_backward(int type, const void* dy, const PositionCall& call, void* dpositions,
                        cudaStream_t stream);

/// Tokens in order of their row within the table, then of their coming; what has no row there is last.
struct SortedTokens {
  const std::uint32_t *row, *token;
};
/// Workspace for sorting n tokens, a multiple of 256.
std::size_t sort_workspace(std::int64_t n);
/// Sorts tokens by row of the table, at most most_sorted at a time.
inline constexpr std::int64_t most_sorted = std::int64_t{1} << 20;
SortedTokens sort_tokens(const std::int32_t* tokens, std::int64_t n, const TableShape& shape, void* workspace,
                         cudaStream_t stream);
/// dtable[row] += dy[token] for every token of the row, one after the other. dtable is f32, f64 beside f64.
void add_by_row(int type, const SortedTokens& sorted, const void* dy, const TableShape& shape, void* dtable,
                std::int64_t n, cudaStream_t stream);

}  // namespace mindpipe::cuda
