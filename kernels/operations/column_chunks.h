#pragma once
#include "operations/calls.h"
#include "operations/either_device.h"

/// How a GPU cuts sums over rows: a part's rows, sample after sample, into chunks. The rows of a part alone
/// decide, so that a part by itself has the bits that it has beside others.
namespace mindpipe {

inline constexpr std::int64_t least_chunk_rows = 32,
                              most_chunks = 256;  ///< rows of a chunk; chunks of a part

/// Rows of a part in each sample.
MINDPIPE_EITHER_DEVICE inline std::int64_t rows_of_part(const RowParts& shape, std::int64_t part) {
  return (part + 1) * shape.rows / shape.parts - part * shape.rows / shape.parts;
}
/// Rows of a chunk of `rows`, and how many chunks they are.
MINDPIPE_EITHER_DEVICE inline std::int64_t chunk_rows(std::int64_t rows) {
  const std::int64_t even = (rows + most_chunks - 1) / most_chunks;
  return even < least_chunk_rows ? least_chunk_rows : even;
}
MINDPIPE_EITHER_DEVICE inline std::int64_t chunks_of_rows(std::int64_t rows) {
  return (rows + chunk_rows(rows) - 1) / chunk_rows(rows);
}
/// Chunks of the part that has most.
inline std::int64_t most_chunks_of(const RowParts& shape) {
  std::int64_t most = 0;
  for (std::int64_t part = 0; part < shape.parts; ++part) {
    const std::int64_t chunks = chunks_of_rows(shape.samples * rows_of_part(shape, part));
    most = chunks > most ? chunks : most;
  }
  return most;
}

/// Columns of the widest rows whose norm has both gradients in one pass, by dtype_index: f64, f32, bf16.
constexpr std::int64_t most_norm_columns(int type) { return type == 2 ? 8192 : type == 1 ? 4096 : 0; }

}  // namespace mindpipe
