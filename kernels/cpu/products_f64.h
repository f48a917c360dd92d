#pragma once
#include "operations/products.h"

/// The products in f64, of checked operands, as plain loops: for gradient checks.
namespace mindpipe {

void linear_f64(const LinearOperands& operands, int threads);
void linear_backward_input_f64(const LinearBackwardInputOperands& operands, int threads);
void linear_backward_weight_f64(const LinearBackwardWeightOperands& operands, int threads);

}  // namespace mindpipe
