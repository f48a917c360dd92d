#pragma once
#include <cmath>

#include "backend.h"
#include "calls.h"
#include "operands.h"

namespace mindpipe {

/// The slot of an update: the value's dtype, or the master's when there is none.
inline int update_slot(const Tensor& gradient, const Tensor& master, const Tensor& value, const char* operation) {
  require(gradient, master.count(), master.dtype, operation, "gradient");
  if (value) {
    require_count(value, master.count(), operation, "value");
    require_dtype(master, wide(value.dtype), operation, "master");
    return slot(value.dtype);
  }
  require_dtype(master, wide(master.dtype), operation, "master");
  return slot(master.dtype);
}

inline AdamWStep step_of(const AdamW& rule, const UpdateScale& scale) {
  MP_CHECK(rule.step >= 1, "adamw: step {} (counted from 1)", rule.step);
  const double beta1 = rule.beta1, beta2 = rule.beta2, rate = rule.rate, steps = static_cast<double>(rule.step);
  return {.gradient_factor = scale.gradient_factor,
          .keep = 1 - rate * rule.decay,
          .beta1 = beta1,
          .beta2 = beta2,
          .one_less_beta1 = 1 - beta1,
          .one_less_beta2 = 1 - beta2,
          .step_size = rate / (1 - std::pow(beta1, steps)),
          .deviation_factor = 1 / std::sqrt(1 - std::pow(beta2, steps)),
          .epsilon = rule.epsilon};
}
inline SgdStep step_of(const Sgd& rule, const UpdateScale& scale) {
  return {.gradient_factor = scale.gradient_factor,
          .rate = rule.rate,
          .momentum = rule.momentum,
          .decay = rule.decay,
          .nesterov = rule.nesterov};
}

}  // namespace mindpipe
