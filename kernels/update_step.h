#pragma once
#include "backend.h"
#include "calls.h"
#include "operands.h"

namespace mindpipe {

/// The slot of an update: the value's dtype, or the master's when there is none.
inline int update_slot(const Tensor& gradient, const Tensor& master, const Tensor& value,
                       const char* operation) {
  require(gradient, master.count(), master.dtype, operation, "gradient");
  if (value) {
    require_count(value, master.count(), operation, "value");
    require_dtype(master, wide(value.dtype), operation, "master");
    return slot(value.dtype);
  }
  require_dtype(master, wide(master.dtype), operation, "master");
  return slot(master.dtype);
}

inline AdamWStep step_of(const AdamW& rule) {
  const double beta1 = rule.beta1, beta2 = rule.beta2, rate = rule.rate;
  return {.rate = rate,
          .keep = 1 - rate * rule.decay,
          .beta1 = beta1,
          .beta2 = beta2,
          .one_less_beta1 = 1 - beta1,
          .one_less_beta2 = 1 - beta2,
          .epsilon = rule.epsilon};
}
inline SgdStep step_of(const Sgd& rule) {
  return {.rate = rule.rate, .momentum = rule.momentum, .decay = rule.decay, .nesterov = rule.nesterov};
}

inline void require_decision(const Tensor& decision, const char* operation) {
  require(decision, Decision::places, DType::f64, operation, "decision");
}
inline void require_spans(const Tensor& x, const Tensor& spans, const Tensor& totals) {
  MP_CHECK(x.dtype == DType::f32 || x.dtype == DType::f64, "sum_spans: x is {} (f32 or f64 is needed)",
           name_of(x.dtype));
  require_dtype(spans, DType::i32, "sum_spans", "spans");
  MP_CHECK(spans.count() == 2 * totals.count(), "sum_spans: spans is {} for {} totals",
           to_string(spans.shape), totals.count());
  require_dtype(totals, DType::f64, "sum_spans", "totals");
}
inline void require_decided(const Tensor& sums, const Tensor& decision) {
  require(sums, 2, DType::f64, "decide", "sums");
  require_decision(decision, "decide");
}

}  // namespace mindpipe
