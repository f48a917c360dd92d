#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

#include "operations/rows.h"

/// The formulas of kernels/operations in plain double precision, one loop each.
namespace mindpipe::reference {

using Numbers = std::vector<double>;
inline std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

inline Numbers swiglu(const Numbers& gate_up, std::int64_t rows, std::int64_t cols) {
  Numbers y(at(rows * cols));
  for (std::int64_t n = 0; n < rows; ++n)
    for (std::int64_t j = 0; j < cols; ++j) {
      const double g = gate_up[at(n * 2 * cols + j)], u = gate_up[at(n * 2 * cols + cols + j)];
      y[at(n * cols + j)] = g * sigmoid(g) * u;
    }
  return y;
}

inline Numbers swiglu_backward(const Numbers& dy, const Numbers& gate_up, std::int64_t rows,
                               std::int64_t cols) {
  Numbers d(gate_up.size());
  for (std::int64_t n = 0; n < rows; ++n)
    for (std::int64_t j = 0; j < cols; ++j) {
      const double g = gate_up[at(n * 2 * cols + j)], u = gate_up[at(n * 2 * cols + cols + j)],
                   w = dy[at(n * cols + j)], s = sigmoid(g);
      d[at(n * 2 * cols + j)] = w * u * (s + g * s * (1 - s));
      d[at(n * 2 * cols + cols + j)] = w * g * s;
    }
  return d;
}

/// 1 / (1 - p) where element j of row r of sample s is kept, else 0; rows [first, first + rows) of the whole
/// sequences.
inline Numbers mask(const Dropout& dropout, const SequencePart& sequence, std::int64_t cols) {
  Numbers factors;
  const double threshold = std::round(static_cast<double>(dropout.probability) * 0x1p32);
  for (std::int64_t s = 0; s < sequence.samples; ++s) {
    RandomStream stream = dropout.stream;
    stream.sample += static_cast<std::uint32_t>(s);
    for (std::int64_t r = 0; r < sequence.rows; ++r)
      for (std::int64_t j = 0; j < cols; ++j)
        factors.push_back(stream.word(static_cast<std::uint64_t>((sequence.first + r) * cols + j)) >=
                                  threshold
                              ? 1 / (1 - static_cast<double>(dropout.probability))
                              : 0.0);
  }
  return factors;
}

struct Normed {
  Numbers y, statistics;
};
inline Normed norm(NormKind kind, const Numbers& x, const Numbers& gain, const Numbers& offset,
                   double epsilon) {
  const auto cols = static_cast<std::int64_t>(gain.size()), rows = static_cast<std::int64_t>(x.size()) / cols;
  Normed result{Numbers(x.size()), Numbers(at(2 * rows))};
  for (std::int64_t n = 0; n < rows; ++n) {
    double mean = 0, variance = 0;
    if (kind == NormKind::layer)
      for (std::int64_t j = 0; j < cols; ++j) mean += x[at(n * cols + j)] / static_cast<double>(cols);
    for (std::int64_t j = 0; j < cols; ++j)
      variance += std::pow(x[at(n * cols + j)] - mean, 2) / static_cast<double>(cols);
    const double inverse = 1 / std::sqrt(variance + epsilon);
    result.statistics[at(2 * n)] = mean;
    result.statistics[at(2 * n + 1)] = inverse;
    for (std::int64_t j = 0; j < cols; ++j)
      result.y[at(n * cols + j)] =
          (x[at(n * cols + j)] - mean) * inverse * gain[at(j)] + (offset.empty() ? 0 : offset[at(j)]);
  }
  return result;
}

struct NormGradients {
  Numbers dx, dgain, doffset;
};
/// The gradient of a norm by the chain rule through mean and deviation, term by term.
inline NormGradients norm_backward(NormKind kind, const Numbers& dy, const Numbers& x, const Numbers& gain,
                                   double epsilon) {
  const auto cols = static_cast<std::int64_t>(gain.size()), rows = static_cast<std::int64_t>(x.size()) / cols;
  const Numbers statistics = norm(kind, x, gain, {}, epsilon).statistics;
  NormGradients d{Numbers(x.size()), Numbers(at(cols)), Numbers(at(cols))};
  for (std::int64_t n = 0; n < rows; ++n) {
    const double mean = statistics[at(2 * n)], r = statistics[at(2 * n + 1)],
                 size = static_cast<double>(cols);
    double d_inverse = 0, d_mean = 0;
    for (std::int64_t j = 0; j < cols; ++j) {
      const double w = dy[at(n * cols + j)] * gain[at(j)], centered = x[at(n * cols + j)] - mean;
      d_inverse += w * centered;
      d_mean -= w * r;
      d.dgain[at(j)] += dy[at(n * cols + j)] * centered * r;
      d.doffset[at(j)] += dy[at(n * cols + j)];
    }
    const double d_variance =
        d_inverse * -0.5 * r * r * r;  // sum (x - mean) is zero, so mean gets nothing from the variance
    for (std::int64_t j = 0; j < cols; ++j) {
      const double w = dy[at(n * cols + j)] * gain[at(j)], centered = x[at(n * cols + j)] - mean;
      d.dx[at(n * cols + j)] =
          w * r + d_variance * 2 * centered / size + (kind == NormKind::layer ? d_mean / size : 0);
    }
  }
  return d;
}

/// Losses of rows of logits over a whole vocabulary, and their gradients times `factor`.
struct Losses {
  Numbers losses, dlogits;
};
inline Losses cross_entropy(const Numbers& logits, std::int64_t cols, std::int64_t vocabulary,
                            const std::vector<std::int32_t>& targets, double smoothing, double factor) {
  Losses result{Numbers(targets.size()), Numbers(logits.size())};
  for (std::size_t n = 0; n < targets.size(); ++n) {
    if (targets[n] < 0) continue;
    const double* row = logits.data() + n * at(cols);
    double sum = 0;
    for (std::int64_t j = 0; j < vocabulary; ++j) sum += std::exp(row[j]);
    for (std::int64_t j = 0; j < vocabulary; ++j) {
      const double wanted =
          smoothing / static_cast<double>(vocabulary) + (j == targets[n] ? 1 - smoothing : 0);
      result.losses[n] -= wanted * (row[j] - std::log(sum));
      result.dlogits[n * at(cols) + at(j)] = factor * (std::exp(row[j]) / sum - wanted);
    }
  }
  return result;
}

}  // namespace mindpipe::reference
