#pragma once
#include <algorithm>
#include <span>
#include <vector>

#include "core/portable_math.h"
#include "operations/elementwise.h"

/// Norms, sums over rows, and rotations.
namespace mindpipe {

enum class NormKind : std::uint8_t { layer, rms };

/// The shape of a sum over rows of dy [samples, rows, cols] into [parts, cols]; a matrix is one sample.
inline RowParts row_parts(const Tensor& dy, const Tensor& sums, const char* operation, const char* name) {
  const Shape& shape = dy.shape;
  MP_CHECK(shape.rank == 2 || shape.rank == 3, "{}: {} is neither [samples, rows, cols] nor a matrix",
           operation, to_string(shape));
  const bool is_matrix = shape.rank == 2;
  RowParts parts{is_matrix ? 1 : shape[0], is_matrix ? shape[0] : shape[1], dy.cols(), 0};
  parts.parts = sums.count() / std::max<std::int64_t>(parts.cols, 1);
  require(sums, parts.parts * parts.cols, wide(dy.dtype), operation, name);
  return parts;
}

/// db[parts,m] += column sums of dy[samples, rows, m] in row order; parts as in RowParts.
struct BiasBackwardOperands {
  Tensor dy, db;

  RowParts checked() const { return row_parts(dy, db, "bias_backward", "db"); }
};

/// layer: y = (x - mean) / sqrt(variance + epsilon) * gain + offset; rms: y = x / sqrt(mean square +
/// epsilon) * gain. statistics[n,2] f32 receives (mean, 1 / deviation).
struct NormOperands {
  NormKind kind = NormKind::layer;
  Tensor x, gain, offset = {};
  double epsilon = 0;
  Tensor statistics, y;

  void check() const {
    require(y, x.count(), x.dtype, "norm", "y");
    require(gain, x.cols(), x.dtype, "norm", "gain");
    if (offset) require(offset, x.cols(), x.dtype, "norm", "offset");
    require(statistics, 2 * x.rows(), wide(x.dtype), "norm", "statistics");
  }
};

/// y = x + dropout(branch + bias) as in `residual`, then normed = the norm of the rounded sum, in one pass.
struct ResidualNormOperands {
  Tensor x, branch, bias = {};
  Dropout dropout = {};
  SequencePart sequence;
  Tensor y;
  NormKind kind = NormKind::layer;
  Tensor gain, offset = {};
  double epsilon = 0;
  Tensor statistics, normed;

  ResidualOperands residual() const { return {x, branch, bias, dropout, sequence, y}; }
  NormOperands norm() const { return {kind, y, gain, offset, epsilon, statistics, normed}; }
  void check() const { norm().check(); }
};

/// dx = residual + the gradient through the norm; dx may be residual.
struct NormBackwardInputOperands {
  NormKind kind = NormKind::layer;
  Tensor dy, x, gain, statistics, residual = {}, dx;

  void check() const {
    require(dy, x.count(), x.dtype, "norm_backward_input", "dy");
    require(dx, x.count(), x.dtype, "norm_backward_input", "dx");
    if (residual) require(residual, x.count(), x.dtype, "norm_backward_input", "residual");
    require(gain, x.cols(), x.dtype, "norm_backward_input", "gain");
    require(statistics, 2 * x.rows(), wide(x.dtype), "norm_backward_input", "statistics");
  }
};

/// dgain[parts,cols] += , doffset[parts,cols] += : sums in row order of dy, x [samples, rows, cols].
struct NormBackwardParametersOperands {
  NormKind kind = NormKind::layer;
  Tensor dy, x, statistics, dgain, doffset = {};

  RowParts checked() const {
    const RowParts parts = row_parts(dy, dgain, "norm_backward_parameters", "dgain");
    require(x, dy.count(), dy.dtype, "norm_backward_parameters", "x");
    require(statistics, 2 * dy.rows(), wide(dy.dtype), "norm_backward_parameters", "statistics");
    if (doffset) require(doffset, dgain.count(), wide(dy.dtype), "norm_backward_parameters", "doffset");
    return parts;
  }
};

/// The usual frequencies of rotary positions: base^(-2i/width) for each pair of a head.
inline std::vector<double> rotary_frequencies(double base, std::int64_t width) {
  std::vector<double> frequencies;
  for (std::int64_t i = 0; i < width / 2; ++i)
    frequencies.push_back(portable::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(width)));
  return frequencies;
}

/// Both gradients of a norm: those of its parameters, then that of its input, which dx may be residual of.
/// Between them dbias[parts, cols], unless none, += column sums of residual, as in bias_backward.
struct NormBackwardOperands {
  NormKind kind = NormKind::layer;
  Tensor dy, x, gain, statistics, residual = {}, dx, dgain, doffset = {}, dbias = {};

  NormBackwardParametersOperands parameters() const { return {kind, dy, x, statistics, dgain, doffset}; }
  BiasBackwardOperands bias() const { return {residual, dbias}; }
  NormBackwardInputOperands input() const { return {kind, dy, x, gain, statistics, residual, dx}; }
  RowParts checked() const {
    input().check();
    const RowParts parts = parameters().checked();
    if (dbias) {
      MP_CHECK(residual, "norm_backward: a bias without the residual that its gradient is added up of");
      require(dbias, dgain.count(), dgain.dtype, "norm_backward", "dbias");
    }
    return parts;
  }
  /// Calls visit(name, operands) for the operations that it is together.
  template <class Visit>
  void in_turn(const Visit& visit) const {
    visit("norm_backward_parameters", parameters());
    if (dbias) visit("bias_backward", bias());
    visit("norm_backward_input", input());
  }
};

/// Turns the given heads in place: pairs (i, i + width/2) by the angle position * frequencies[i];
/// `inverse` turns back. The position of row r of a sample is first_position + r.
struct RotaryOperands {
  Heads heads;
  std::span<const double> frequencies;  ///< one for each pair of a head
  std::int64_t first_position = 0;
  bool inverse = false;

  void check() const {
    const Shape& shape = heads.data.shape;
    MP_CHECK(shape.rank == 4, "rotary: {} is not [samples, rows, heads, width]", to_string(shape));
    MP_CHECK(shape[3] % 2 == 0, "rotary: heads of width {} (pairs need an even one)", shape[3]);
    MP_CHECK(static_cast<std::int64_t>(frequencies.size()) == shape[3] / 2,
             "rotary: {} frequencies for heads of width {}", frequencies.size(), shape[3]);
    MP_CHECK(heads.first >= 0 && heads.count >= 0 && heads.first + heads.count <= shape[2],
             "rotary: heads {}..{} of {}", heads.first, heads.first + heads.count, shape[2]);
  }
};

}  // namespace mindpipe
