#pragma once
#include "operations/calls.h"
#include "operations/operands.h"

/// Gradients that are added as whole numbers, so that no order and no grouping of additions changes a bit.
namespace mindpipe {

inline void require_marks(const Tensor& marks, const char* operation) {
  require(marks, 1, DType::i64, operation, "marks");
}

/// totals[i] (i64) += gradient[i] (f32) x 2^40, rounded to the nearest, ties to even; then gradient[i] = 0,
/// ready for what is added to it next. An element beyond +-1,024 or not finite adds nothing to its total and
/// 1 to marks[0] (i64), which ranks sum as they sum totals.
struct AddAsIntegersOperands {
  Tensor gradient, totals, marks;

  void check() const {
    require_dtype(gradient, DType::f32, "add_as_integers", "gradient");
    require(totals, gradient.count(), DType::i64, "add_as_integers", "totals");
    require_marks(marks, "add_as_integers");
  }
};

/// gradient[i] (f32) = totals[i] x 2^-40, rounded once, to the nearest, ties to even; then totals[i] = 0, for
/// the next window. It is 0 or at least 2^-40 in size, so never subnormal. Where marks[0] is not 0 every
/// element is NaN instead, so that its update is skipped as that of any gradient that is not finite; marks
/// stay as they are.
struct FromIntegersOperands {
  Tensor totals, marks, gradient;

  void check() const {
    require_dtype(gradient, DType::f32, "from_integers", "gradient");
    require(totals, gradient.count(), DType::i64, "from_integers", "totals");
    require_marks(marks, "from_integers");
  }
};

}  // namespace mindpipe
