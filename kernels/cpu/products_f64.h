#pragma once
#include <cstdint>

#include "cpu/products.h"

/// The products in f64, as plain loops: for gradient checks, where only correctness counts. Letters as in
/// backend.h.
namespace mindpipe {

void linear_f64(std::int64_t n, std::int64_t k, std::int64_t m, const double* x, const double* w,
                const double* bias, Curve curve, double* before, double* y, int threads);
void linear_backward_input_f64(std::int64_t n, std::int64_t k, std::int64_t m, const double* dy,
                               const double* w, Curve curve, const double* before, double* dx, int threads);
void linear_backward_weight_f64(std::int64_t n, std::int64_t k, std::int64_t m, const double* dy,
                                const double* x, double* dw, int threads);

}  // namespace mindpipe
