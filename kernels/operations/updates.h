#pragma once
#include <array>
#include <vector>

#include "operations/calls.h"
#include "operations/decision.h"
#include "operations/flat_spans.h"
#include "operations/operands.h"

/// Statistics of gradients, the step's decision, updates. Masters and state are f32 (f64 beside f64).
namespace mindpipe {

inline constexpr std::int64_t statistics_chunk = 16384;
inline std::int64_t statistics_chunks(std::int64_t elements) {
  return (elements + statistics_chunk - 1) / statistics_chunk;
}

struct AdamW {
  float rate = 0, beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f, decay = 0;
};
struct Sgd {
  float rate = 0, momentum = 0, decay = 0;
  bool nesterov = false;
};

/// The dtype_index of an update: the value's dtype, or the master's when there is none.
inline int update_index(const Tensor& gradient, const Tensor& master, const Tensor& value,
                        const char* operation) {
  require(gradient, master.count(), master.dtype, operation, "gradient");
  if (value) {
    require_count(value, master.count(), operation, "value");
    require_dtype(master, wide(value.dtype), operation, "master");
    return dtype_index(value.dtype);
  }
  require_dtype(master, wide(master.dtype), operation, "master");
  return dtype_index(master.dtype);
}
inline void require_decision(const Tensor& decision, const char* operation) {
  require(decision, Decision::places, DType::f64, operation, "decision");
}

/// sums[ceil(count / statistics_chunk)] f64: sum of squares of each chunk, taken in f32.
struct SumSquaresOperands {
  Tensor x, sums;

  std::int64_t chunks() const { return statistics_chunks(x.count()); }
  void check() const { require(sums, chunks(), DType::f64, "sum_squares", "sums"); }
};

/// A range of x, whose chunks begin with it, and where the sum of its first one stands.
struct SquaresSpan : FlatSpan {
  std::int64_t first_sum = 0;
};
/// sum_squares of several ranges of a flat x.
struct SumSquaresOfSpansOperands {
  Tensor x, sums;
  std::vector<SquaresSpan> spans;

  void check() const {
    for (const SquaresSpan& span : spans) {
      require_within(span, x, "sum_squares_of_spans");
      require_within({span.first_sum, statistics_chunks(span.count)}, sums, "sum_squares_of_spans: sums");
    }
    require_dtype(sums, DType::f64, "sum_squares_of_spans", "sums");
  }
  /// Calls visit(name, operands) for the operations that it is together.
  template <class Visit>
  void in_turn(const Visit& visit) const {
    for (const SquaresSpan& span : spans)
      visit("sum_squares", SumSquaresOperands{x.range(span.first, span.count),
                                              sums.range(span.first_sum, statistics_chunks(span.count))});
  }
};

/// totals[s] f64 = x[begin] + ... + x[end - 1], added in f64 for spans[s] = begin, end (i32 [n, 2]); 0 where
/// a span is empty. x f32 or f64. The CPU adds one number after the other, a GPU in an order that follows
/// from the span's length.
struct SumSpansOperands {
  Tensor x, spans, totals;

  void check() const {
    MP_CHECK(x.dtype == DType::f32 || x.dtype == DType::f64, "sum_spans: x is {} (f32 or f64 is needed)",
             name_of(x.dtype));
    require_dtype(spans, DType::i32, "sum_spans", "spans");
    MP_CHECK(spans.count() == 2 * totals.count(), "sum_spans: spans is {} for {} totals",
             to_string(spans.shape), totals.count());
    require_dtype(totals, DType::f64, "sum_spans", "totals");
  }
};

/// Writes the step's decision from `sums` = its loss and its gradient's square (decision.h).
struct ClipAndScaleOperands {
  StepRule rule;
  Tensor sums, decision;

  void check() const {
    require(sums, 2, DType::f64, "clip_and_scale", "sums");
    require_decision(decision, "clip_and_scale");
  }
};

/// A range of what an update moves, with a decay of its own.
struct UpdateSpan : FlatSpan {
  float decay = 0;
};
/// An update of several ranges of flat tensors; the decay of `all` is that of none.
template <class Operands>
struct UpdateOfSpans {
  Operands all;
  std::vector<UpdateSpan> spans;

  /// The dtype_index of the kernel.
  int checked() const {
    for (const UpdateSpan& span : spans) require_within(span, all.master, Operands::name);
    return all.checked();
  }
  Operands of(const UpdateSpan& span) const {
    Operands one = all;
    one.rule.decay = span.decay;
    for (Tensor* tensor : one.moved())
      if (*tensor) *tensor = tensor->range(span.first, span.count);
    return one;
  }
  /// Calls visit(name, operands) for the operations that it is together.
  template <class Visit>
  void in_turn(const Visit& visit) const {
    for (const UpdateSpan& span : spans) visit(Operands::name, of(span));
  }
};

/// One fused pass of AdamW; `value`, unless none, receives the rounded master. Skipped steps change nothing.
struct AdamWOperands {
  static constexpr const char* name = "adamw";
  AdamW rule;
  Tensor decision, gradient, master, m, v, value = {};

  std::array<Tensor*, 5> moved() { return {&gradient, &master, &m, &v, &value}; }

  /// The dtype_index of the kernel.
  int checked() const {
    const int index = update_index(gradient, master, value, "adamw");
    require(m, master.count(), master.dtype, "adamw", "m");
    require(v, master.count(), master.dtype, "adamw", "v");
    require_decision(decision, "adamw");
    return index;
  }
  AdamWStep step() const {
    const double beta1 = rule.beta1, beta2 = rule.beta2, rate = rule.rate;
    return {.rate = rate,
            .keep = 1 - rate * rule.decay,
            .beta1 = beta1,
            .beta2 = beta2,
            .one_less_beta1 = 1 - beta1,
            .one_less_beta2 = 1 - beta2,
            .epsilon = rule.epsilon};
  }
};
using AdamWOfSpansOperands = UpdateOfSpans<AdamWOperands>;

/// One fused pass of SGD; `velocity` is none without momentum; `value` and a skipped step as in adamw.
struct SgdOperands {
  static constexpr const char* name = "sgd";
  Sgd rule;
  Tensor decision, gradient, master, velocity = {}, value = {};

  std::array<Tensor*, 4> moved() { return {&gradient, &master, &velocity, &value}; }

  /// The dtype_index of the kernel.
  int checked() const {
    const int index = update_index(gradient, master, value, "sgd");
    MP_CHECK(velocity || rule.momentum == 0, "sgd: momentum {} without a velocity", rule.momentum);
    if (velocity) require(velocity, master.count(), master.dtype, "sgd", "velocity");
    require_decision(decision, "sgd");
    return index;
  }
  SgdStep step() const {
    return {.rate = rule.rate, .momentum = rule.momentum, .decay = rule.decay, .nesterov = rule.nesterov};
  }
};
using SgdOfSpansOperands = UpdateOfSpans<SgdOperands>;

}  // namespace mindpipe
