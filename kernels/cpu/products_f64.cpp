#include "cpu/products_f64.h"

#include "cpu/activation_f64.h"
#include "cpu/parallel.h"

namespace mindpipe {
namespace {

/// Calls one(row) for all rows, shared among threads unless there is little to do.
template <class One>
void for_rows(int threads, std::int64_t rows, std::int64_t work_of_a_row, const One& one) {
  in_ranges(threads, rows, 1 + 65536 / (work_of_a_row + 1), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) one(row);
  });
}

}  // namespace

void linear_f64(const LinearOperands& o, int threads) {
  const std::int64_t n = o.x.rows(), k = o.x.cols(), m = o.w.rows();
  const double *x = o.x.as<double>(), *w = o.w.as<double>(), *bias = o.bias.as<double>();
  double *before = o.before.as<double>(), *y = o.y.as<double>();
  for_rows(threads, n, k * m, [=, activation = o.activation](std::int64_t i) {
    for (std::int64_t j = 0; j < m; ++j) {
      double z = 0;
      for (std::int64_t p = 0; p < k; ++p) z += x[i * k + p] * w[j * k + p];
      if (bias) z += bias[j];
      if (before && activation != Activation::none) before[i * m + j] = z;
      y[i * m + j] = f64::activated(activation, z);
    }
  });
}

void linear_backward_input_f64(const LinearBackwardInputOperands& o, int threads) {
  const std::int64_t n = o.dy.rows(), k = o.w.cols(), m = o.dy.cols();
  const double *dy = o.dy.as<double>(), *w = o.w.as<double>(), *before = o.before.as<double>();
  double* dx = o.dx.as<double>();
  for_rows(threads, n, k * m, [=, activation = o.activation](std::int64_t i) {
    double* row = dx + i * k;
    for (std::int64_t j = 0; j < k; ++j) row[j] = 0;
    for (std::int64_t p = 0; p < m; ++p)
      for (std::int64_t j = 0; j < k; ++j) row[j] += dy[i * m + p] * w[p * k + j];
    if (activation != Activation::none)
      for (std::int64_t j = 0; j < k; ++j) row[j] *= f64::derivative(activation, before[i * k + j]);
  });
}

void linear_backward_weight_f64(const LinearBackwardWeightOperands& o, int threads) {
  const std::int64_t n = o.dy.rows(), k = o.x.cols(), m = o.dy.cols();
  const double *dy = o.dy.as<double>(), *x = o.x.as<double>();
  double* dw = o.dw.as<double>();
  for_rows(threads, m, k * n, [=](std::int64_t i) {
    for (std::int64_t p = 0; p < n; ++p)
      for (std::int64_t j = 0; j < k; ++j) dw[i * k + j] += dy[p * m + i] * x[p * k + j];
  });
}

}  // namespace mindpipe
