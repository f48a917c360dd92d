#pragma once
#include "operations/decision.h"
#include "operations/operands.h"
#include "operations/pixel_window.h"

/// Norms of columns over all rows. Statistics of a column are three numbers, [3, columns]: mean, 1 /
/// deviation and the unbiased variance.
namespace mindpipe {

/// parts[i] [2, columns] = means, and sums of squares around them, of the rows of part i, pixel_chunk each.
struct BatchMomentsOperands {
  Tensor x, parts;

  void check() const {
    require(parts, 2 * pixel_chunks(x.rows()) * x.cols(), wide(x.dtype), "batch_moments", "parts");
  }
};

/// The parts' moments joined in order, in f64: of `rows` rows in all, the last part having the rest. One row
/// is none that varies: then a part's second number is the variance itself.
struct BatchStatisticsOperands {
  Tensor parts;
  std::int64_t rows = 0;
  double epsilon = 0;
  Tensor statistics;

  void check() const {
    MP_CHECK(statistics.count() % 3 == 0 && rows > 0, "batch_statistics: {} of {} rows",
             to_string(statistics.shape), rows);
    require(parts, pixel_chunks(rows) * 2 * statistics.count() / 3, statistics.dtype, "batch_statistics",
            "parts");
  }
};

inline void require_batch_norm(const Tensor& x, const Tensor& statistics, const Tensor& gain,
                               const Tensor& offset, const char* operation) {
  require(statistics, 3 * x.cols(), wide(x.dtype), operation, "statistics");
  require(gain, x.cols(), x.dtype, operation, "gain");
  require(offset, x.cols(), x.dtype, operation, "offset");
}

/// y = f((x - mean) / deviation * gain + offset), f(a) = max(a, 0) with `relu`, else a.
struct BatchNormOperands {
  Tensor x, statistics, gain, offset;
  bool relu = false;
  Tensor y;

  void check() const {
    require_batch_norm(x, statistics, gain, offset, "batch_norm");
    require(y, x.count(), x.dtype, "batch_norm", "y");
  }
};

/// parts[i] [2, columns] = sums of d and of d h over the rows of part i, with h = (x - mean) / deviation and
/// d = dy f'(h gain + offset): of all parts together, the gradients of offset and gain.
struct BatchNormBackwardSumsOperands {
  Tensor dy, x, statistics, gain, offset;
  bool relu = false;
  Tensor parts;

  void check() const {
    require_batch_norm(x, statistics, gain, offset, "batch_norm_backward_sums");
    require(dy, x.count(), x.dtype, "batch_norm_backward_sums", "dy");
    require(parts, 2 * pixel_chunks(x.rows()) * x.cols(), wide(x.dtype), "batch_norm_backward_sums", "parts");
  }
};

/// dx = residual + gain / deviation (d - sum(d) / rows - h sum(d h) / rows), `sums` [2, columns] of all rows;
/// dx may be dy, or residual.
struct BatchNormBackwardInputOperands {
  Tensor dy, x, statistics, gain, offset, sums;
  bool relu = false;
  Tensor residual = {}, dx;

  void check() const {
    require_batch_norm(x, statistics, gain, offset, "batch_norm_backward_input");
    require(dy, x.count(), x.dtype, "batch_norm_backward_input", "dy");
    require(sums, 2 * x.cols(), wide(x.dtype), "batch_norm_backward_input", "sums");
    if (residual) require(residual, x.count(), x.dtype, "batch_norm_backward_input", "residual");
    require(dx, x.count(), x.dtype, "batch_norm_backward_input", "dx");
  }
};

/// master += share (factor sum - master): how a running mean follows the mean of `sum`, 1 / factor terms;
/// `value`, unless none, receives it rounded. A skipped step changes nothing. Masters are f32 (f64 beside
/// f64).
struct RunningMeanOperands {
  double share = 0, factor = 0;
  Tensor decision, sum, master, value = {};

  void check() const {
    require(decision, Decision::places, DType::f64, "running_mean", "decision");
    require(sum, master.count(), master.dtype, "running_mean", "sum");
    require_dtype(master, wide(master.dtype), "running_mean", "master");
    if (value) require(value, master.count(), DType::bf16, "running_mean", "value");
  }
};

}  // namespace mindpipe
