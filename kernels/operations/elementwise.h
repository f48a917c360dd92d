#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/random.h"
#include "operations/calls.h"
#include "operations/flat_spans.h"
#include "operations/operands.h"

namespace mindpipe {

/// Dropout with the mask as a function: element e of sample s (counted from stream.sample) is kept if
/// word(e) of the stream {.., sample = stream.sample + s} is at least threshold; kept values are scaled by 1
/// / (1 - p). `e` is the index in the sample's whole tensor: (row of the whole sequence) * columns + column.
struct Dropout {
  float probability = 0;  ///< 0: nothing happens, and nothing is drawn
  RandomStream stream;
};

/// The mask of a dropout over the rows of x, a part of whole sequences.
inline MaskRows mask_of(const Dropout& dropout, const SequencePart& sequence, const Tensor& x,
                        const char* operation) {
  const std::int64_t rows = sequence.samples * sequence.rows;
  MP_CHECK(rows > 0 && x.rows() == rows, "{}: {} is not {} samples of {} rows", operation, to_string(x.shape),
           sequence.samples, sequence.rows);
  const double probability = static_cast<double>(dropout.probability);
  MP_CHECK(probability >= 0 && probability < 1, "{}: probability {} (at least 0, less than 1)", operation,
           dropout.probability);
  MP_CHECK(sequence.first >= 0 && sequence.first + sequence.rows <= sequence.whole,
           "{}: rows {}..{} of a sequence of {}", operation, sequence.first, sequence.first + sequence.rows,
           sequence.whole);
  const auto key = dropout.stream.key();
  MaskRows mask;
  mask.key[0] = key[0];
  mask.key[1] = key[1];
  mask.step = dropout.stream.step;
  mask.sample = dropout.stream.sample;
  mask.threshold = static_cast<std::uint32_t>(std::llround(probability * 0x1p32));
  mask.scale = 1.0 / (1.0 - probability);
  mask.rows = sequence.rows;
  mask.first = sequence.first;
  mask.cols = x.cols();
  mask.first_col = sequence.first_col;
  mask.whole_cols = sequence.whole_cols > 0 ? sequence.whole_cols : x.cols();
  MP_CHECK(mask.first_col >= 0 && mask.first_col + mask.cols <= mask.whole_cols,
           "{}: columns {}..{} of rows of {}", operation, mask.first_col, mask.first_col + mask.cols,
           mask.whole_cols);
  return mask;
}

/// y[n,f] = silu(gate) * up, with gate_up[n,2f] = gate | up.
struct SwigluOperands {
  Tensor gate_up, y;

  void check() const { require(gate_up, 2 * y.count(), y.dtype, "swiglu", "gate_up"); }
};

struct SwigluBackwardOperands {
  Tensor dy, gate_up, dgate_up;

  void check() const {
    require(gate_up, 2 * dy.count(), dy.dtype, "swiglu_backward", "gate_up");
    require(dgate_up, 2 * dy.count(), dy.dtype, "swiglu_backward", "dgate_up");
  }
};

/// dx = dy activation'(before): the gradient where no product follows that could take it along; dx may be dy.
struct ActivationBackwardOperands {
  Tensor dy, before;
  Activation activation = Activation::none;
  Tensor dx;

  void check() const {
    MP_CHECK(activation != Activation::none, "activation_backward: no activation is named");
    require(before, dy.count(), dy.dtype, "activation_backward", "before");
    require(dx, dy.count(), dy.dtype, "activation_backward", "dx");
  }
};

/// y = factor x, rounded to its dtype; the factor is rounded to f32 beside f32 and bf16. y may be x.
struct ScaleOperands {
  Tensor x;
  double factor = 1;
  Tensor y;

  void check() const { require(y, x.count(), x.dtype, "scale", "y"); }
};

/// y = x + dropout(branch + bias); x, branch, y are [samples, rows, cols], bias [cols]; y may be x.
struct ResidualOperands {
  Tensor x, branch, bias = {};
  Dropout dropout = {};
  SequencePart sequence;
  Tensor y;

  MaskRows checked() const {
    require(branch, x.count(), x.dtype, "residual", "branch");
    require(y, x.count(), x.dtype, "residual", "y");
    if (bias) require(bias, x.cols(), x.dtype, "residual", "bias");
    return mask_of(dropout, sequence, x, "residual");
  }
};

/// y = dropout(x): forward and backward alike; y may be x.
struct DropoutOperands {
  Tensor x;
  Dropout dropout;
  SequencePart sequence;
  Tensor y;

  MaskRows checked() const {
    require(y, x.count(), x.dtype, "dropout", "y");
    return mask_of(dropout, sequence, x, "dropout");
  }
};

/// sum = a + b, rounded to its dtype, or exactly in i64; sum may be a or b.
struct AddOperands {
  Tensor a, b, sum;

  void check() const {
    require(b, a.count(), a.dtype, "add", "b");
    require(sum, a.count(), a.dtype, "add", "sum");
  }
};

/// sum = the sum of all terms along a tree, each addition rounded to their dtype, or exact in i64. The terms
/// go on a stack one after the other, and behind term i the two upper ones become their sum, joins[i] times
/// (core/sum_tree.h). `sum` may be any of the terms; the others stay as they are.
struct AddTreeOperands {
  static constexpr int most_terms = 64, most_open = 8;
  std::vector<Tensor> terms;
  std::vector<std::uint8_t> joins;
  Tensor sum;

  /// The most sums on the stack; 0 where this is no tree with one root.
  int open() const {
    int open = 0, most = 0;
    for (const std::uint8_t joined : joins) {
      most = std::max(most, ++open);
      if (joined >= open) return 0;
      open -= joined;
    }
    return open == 1 && joins.size() == terms.size() ? most : 0;
  }
  /// Whether it is a tree with one root that kernels have room for.
  bool is_one_tree() const {
    return open() > 0 && open() <= most_open && terms.size() <= static_cast<std::size_t>(most_terms);
  }
  void check() const {
    MP_CHECK(is_one_tree(), "add_tree: {} terms are no tree of at most {} with {} open", terms.size(),
             most_terms, most_open);
    for (const Tensor& term : terms) require(term, sum.count(), sum.dtype, "add_tree", "a term");
  }
};

/// largest = the larger of a and b, a NaN of either kept; f32 or f64; largest may be a or b.
struct MaximumOperands {
  Tensor a, b, largest;

  void check() const {
    require(b, a.count(), a.dtype, "maximum", "b");
    require(largest, a.count(), a.dtype, "maximum", "largest");
    require_dtype(a, wide(a.dtype), "maximum", "a");
  }
};

/// total += part, f32 += f32 or bf16.
struct AccumulateOperands {
  Tensor part, total;

  void check() const { require(total, part.count(), wide(part.dtype), "accumulate", "total"); }
};

/// y = x in the dtype of y.
struct ConvertOperands {
  Tensor x, y;

  void check() const { require_count(y, x.count(), "convert", "y"); }
};

/// Every element of x becomes `value`, rounded to its dtype.
struct FillOperands {
  Tensor x;
  double value = 0;
};

/// fill of several ranges of a flat x.
struct FillOfSpansOperands {
  Tensor x;
  double value = 0;
  std::vector<FlatSpan> spans;

  void check() const {
    for (const FlatSpan& span : spans) require_within(span, x, "fill_of_spans");
  }
  /// Calls visit(name, operands) for the operations that it is together.
  template <class Visit>
  void in_turn(const Visit& visit) const {
    for (const FlatSpan& span : spans) visit("fill", FillOperands{x.range(span.first, span.count), value});
  }
};

}  // namespace mindpipe
