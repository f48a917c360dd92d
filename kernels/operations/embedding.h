#pragma once
#include "core/portable_math.h"
#include "operations/calls.h"
#include "operations/operands.h"

/// Tables of tokens and of positions.
namespace mindpipe {

/// y[n,cols] = table[tokens - first_row], zero where that is no row of the table. tokens i32 [n].
struct EmbeddingOperands {
  Tensor tokens, table;
  std::int64_t first_row = 0;
  Tensor y;

  void check() const {
    dtype_index(table.dtype);  // refuses what is no number
    require_dtype(tokens, DType::i32, "embedding", "tokens");
    require(y, tokens.count() * table.cols(), table.dtype, "embedding", "y");
  }
};

/// dtable[rows,cols] f32 += rows of dy in token order, but for those of the token `dropped`.
struct EmbeddingBackwardOperands {
  Tensor tokens, dy;
  std::int64_t first_row = 0;
  Tensor dtable;
  std::int64_t dropped = -1;  ///< no token is negative

  void check() const {
    require_dtype(tokens, DType::i32, "embedding_backward", "tokens");
    require_count(dy, tokens.count() * dtable.cols(), "embedding_backward", "dy");
    require_dtype(dtable, wide(dy.dtype), "embedding_backward", "dtable");
  }
};

/// Refuses x unless its rows are those that `sequence` counts.
inline void require_sequence_part(const Tensor& x, const SequencePart& sequence, const char* operation) {
  MP_CHECK(x.rows() == sequence.samples * sequence.rows, "{}: {} is not {} samples of {} rows", operation,
           to_string(x.shape), sequence.samples, sequence.rows);
}

/// Which row of a table of positions the first row of x reads, where x is a part of whole sequences.
inline std::int64_t first_position_of(const Tensor& x, const Tensor& positions, const SequencePart& sequence,
                                      std::int64_t first_position, const char* operation) {
  require_sequence_part(x, sequence, operation);
  const std::int64_t first = first_position + sequence.first, cols = x.cols();
  MP_CHECK(positions.cols() == cols && first >= 0 && first + sequence.rows <= positions.rows(),
           "{}: positions {}..{} of width {} in a table {}", operation, first, first + sequence.rows, cols,
           to_string(positions.shape));
  return first;
}

/// y = x + positions[first_position + row of the whole sequence], broadcast over samples; y may be x.
struct AddPositionsOperands {
  Tensor x, positions;
  SequencePart sequence;
  std::int64_t first_position = 0;
  Tensor y;

  /// The row of `positions` that the first row of x reads.
  std::int64_t checked() const {
    require_dtype(positions, x.dtype, "add_positions", "positions");
    require(y, x.count(), x.dtype, "add_positions", "y");
    return first_position_of(x, positions, sequence, first_position, "add_positions");
  }
};

/// dpositions[first_position + row of the whole sequence] f32 += dy, samples in order.
struct PositionsBackwardOperands {
  Tensor dy;
  SequencePart sequence;
  std::int64_t first_position = 0;
  Tensor dpositions;

  /// The row of `dpositions` that the first row of dy is added to.
  std::int64_t checked() const {
    require_dtype(dpositions, wide(dy.dtype), "positions_backward", "dpositions");
    return first_position_of(dy, dpositions, sequence, first_position, "positions_backward");
  }
};

/// y = x + sines of positions, broadcast over samples: column i < cols / 2 has sin(position frequency(i)),
/// the one cols / 2 further cos of the same, both rounded to f32 beside f32 and bf16. The position of row r
/// of the whole sequence is first_position + r. y may be x.
struct AddSinusoidsOperands {
  Tensor x;
  SequencePart sequence;
  std::int64_t first_position = 0;
  Sinusoids form = Sinusoids::below_base;
  Tensor y;

  SinusoidCall checked() const {
    dtype_index(x.dtype);
    require(y, x.count(), x.dtype, "add_sinusoids", "y");
    require_sequence_part(x, sequence, "add_sinusoids");
    const std::int64_t half = x.cols() / 2, steps = form == Sinusoids::below_base ? half : half - 1;
    MP_CHECK(x.cols() % 2 == 0 && steps > 0, "add_sinusoids: a width of {} (an even one, at least {})",
             x.cols(), form == Sinusoids::below_base ? 2 : 4);
    return {sequence.samples, sequence.rows, x.cols(), first_position + sequence.first,
            portable::log(10000) / static_cast<double>(steps)};
  }
};

}  // namespace mindpipe
