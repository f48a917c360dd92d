#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "paper/told.h"

// The told graph is worked out for single scores, by the mathematics of each operation, and compared with
// attention as the question has it.
namespace mindpipe {
namespace {

using Graph = AttentionGraph;

/// What is put in for tensors when a graph is worked out for one score.
struct OneScore {
  std::int64_t query = 0, key = 0, query_length = 0, key_length = 0;
  double product_of_q_and_k = 0, product_of_dout_and_v = 0;
  double log_sum = 0;     ///< a row's log-sum, and its maximum
  double sum_of_row = 1;  ///< the sum of a reduction that adds
};

/// The value of a tensor of the graph at one score, operation by operation; none where one is not known.
class Evaluation {
 public:
  Evaluation(const ToldGraph& graph, const OneScore& at) : graph_(graph), at_(at) {}

  std::optional<double> operator()(std::int64_t tensor) {
    if (tensor < 0) return std::nullopt;
    if (const auto scalar = graph_.scalars.find(tensor); scalar != graph_.scalars.end())
      return scalar->second;
    if (const auto* one = graph_.operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
                                           CUDNN_ATTR_OPERATION_POINTWISE_YDESC, tensor))
      return pointwise(*one);
    if (const auto* one = graph_.operation(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
                                           CUDNN_ATTR_OPERATION_RESHAPE_YDESC, tensor))
      return (*this)(graph_.operand(*one, CUDNN_ATTR_OPERATION_RESHAPE_XDESC));
    if (const auto* one = graph_.operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
                                           CUDNN_ATTR_OPERATION_REDUCTION_YDESC, tensor))
      return mode_of(*one, CUDNN_ATTR_OPERATION_REDUCTION_DESC, CUDNN_ATTR_REDUCTION_OPERATOR) ==
                     CUDNN_REDUCE_TENSOR_MAX
                 ? at_.log_sum
                 : at_.sum_of_row;
    if (const auto* one = graph_.operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
                                           CUDNN_ATTR_OPERATION_MATMUL_CDESC, tensor))
      return product(graph_.operand(*one, CUDNN_ATTR_OPERATION_MATMUL_ADESC),
                     graph_.operand(*one, CUDNN_ATTR_OPERATION_MATMUL_BDESC));
    if (tensor == Graph::query_lengths) return at_.query_length;
    if (tensor == Graph::key_lengths) return at_.key_length;
    if (tensor == Graph::log_sum) return at_.log_sum;
    return std::nullopt;
  }

 private:
  std::int64_t mode_of(const ToldDescriptor& operation, cudnnBackendAttributeName_t descriptor,
                       cudnnBackendAttributeName_t mode) const {
    const std::int64_t place = graph_.number_of(operation, descriptor);
    return place < 0 ? -1 : graph_.number_of(graph_.descriptors()[static_cast<std::size_t>(place)], mode);
  }
  std::optional<double> product(std::int64_t a, std::int64_t b) const {
    if (a == Graph::q && b == Graph::k) return at_.product_of_q_and_k;
    if (a == Graph::dout && b == Graph::v) return at_.product_of_dout_and_v;
    return std::nullopt;
  }
  std::optional<double> pointwise(const ToldDescriptor& one) {
    const auto mode = static_cast<cudnnPointwiseMode_t>(
        mode_of(one, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_ATTR_POINTWISE_MODE));
    if (mode == CUDNN_POINTWISE_GEN_INDEX) {
      const std::int64_t axis =
          mode_of(one, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_ATTR_POINTWISE_AXIS);
      if (axis != 2 && axis != 3) return std::nullopt;
      return axis == 2 ? at_.query : at_.key;
    }
    const auto value = [&](cudnnBackendAttributeName_t role) { return (*this)(graph_.operand(one, role)); };
    const auto x = value(CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
    if (!x) return std::nullopt;
    if (mode == CUDNN_POINTWISE_EXP) return std::exp(*x);
    if (mode == CUDNN_POINTWISE_IDENTITY) return *x;
    if (mode == CUDNN_POINTWISE_LOG) return std::log(*x);
    if (mode == CUDNN_POINTWISE_RECIPROCAL) return 1 / *x;
    const auto b = value(CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
    if (!b) return std::nullopt;
    if (mode == CUDNN_POINTWISE_ADD) return *x + *b;
    if (mode == CUDNN_POINTWISE_SUB) return *x - *b;
    if (mode == CUDNN_POINTWISE_MUL) return *x * *b;
    if (mode == CUDNN_POINTWISE_DIV) return *x / *b;
    if (mode == CUDNN_POINTWISE_CMP_GE) return *x >= *b;
    if (mode == CUDNN_POINTWISE_CMP_GT) return *x > *b;
    if (mode == CUDNN_POINTWISE_CMP_LT) return *x < *b;
    if (mode == CUDNN_POINTWISE_CMP_LE) return *x <= *b;
    if (mode == CUDNN_POINTWISE_LOGICAL_AND) return *x != 0 && *b != 0;
    const auto chosen = value(CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
    if (mode == CUDNN_POINTWISE_BINARY_SELECT && chosen) return *chosen != 0 ? *x : *b;
    return std::nullopt;
  }

  const ToldGraph& graph_;
  OneScore at_;
};

bool is_seen(const Graph& wanted, const OneScore& at) {
  const std::int64_t queries = wanted.at(Graph::q).extents[2], keys = wanted.at(Graph::k).extents[2];
  if (wanted.padded && (at.query >= at.query_length || at.key >= at.key_length)) return false;
  switch (wanted.diagonal) {
    case Graph::Diagonal::none:
      return true;
    case Graph::Diagonal::upper_left:
      return at.key <= at.query;
    case Graph::Diagonal::lower_right:
      return at.key <= at.query + keys - queries;
  }
  return false;
}

/// The first operand of the product that gives a tensor, or adds to it over heads that share keys.
std::int64_t factor_of(const ToldGraph& told, std::int64_t result) {
  if (const auto* sum = told.operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
                                       CUDNN_ATTR_OPERATION_REDUCTION_YDESC, result))
    result = told.operand(*sum, CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
  const auto* product =
      told.operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_CDESC, result);
  return product == nullptr ? -1 : told.operand(*product, CUDNN_ATTR_OPERATION_MATMUL_ADESC);
}

class Comparison {
 public:
  Comparison(const ToldGraph& told, const Graph& wanted) : told_(told), wanted_(wanted) {}

  std::vector<std::string> all() {
    const auto whole = told_.operations(CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR);
    if (!whole.empty()) compare_with_one(*whole[0]);
    else compare_scores();
    compare_types();
    return std::move(found_);
  }

 private:
  void note(const std::string& text) {
    if (found_.empty() || found_.back() != text) found_.push_back(text);
  }
  /// A forward of one operation: it has no mask of its own, and lengths mask by themselves.
  void compare_with_one(const ToldDescriptor& whole) {
    const std::int64_t scale = told_.operand(whole, CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC);
    const auto value = told_.scalars.find(scale);
    if (value == told_.scalars.end() || value->second != static_cast<double>(wanted_.scale)) note("scale");
    if (wanted_.diagonal != Graph::Diagonal::none) note("mask");
    if (wanted_.padded !=
        (told_.operand(whole, CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_KVDESC) == Graph::key_lengths))
      note("lengths");
  }
  void compare_scores() {
    const std::int64_t queries = wanted_.at(Graph::q).extents[2], keys = wanted_.at(Graph::k).extents[2];
    for (const std::int64_t query : {std::int64_t{0}, queries / 2, queries - 4, queries - 1})
      for (std::int64_t key = 0; key < keys; ++key)
        compare_score({.query = query,
                       .key = key,
                       .query_length = queries - 3,
                       .key_length = keys - 7,
                       .product_of_q_and_k = 3,
                       .product_of_dout_and_v = 5,
                       .log_sum = 0.5,
                       .sum_of_row = 2});
  }
  void compare_score(const OneScore& at) {
    const auto compare = [&](const char* what, Graph::Id result, double wanted) {
      Evaluation value(told_, at);
      const auto got = value(factor_of(told_, result));
      if (!got) note(fmt::format("{} are not worked out", what));
      else if (!(std::abs(*got - wanted) <= 1e-6 * std::abs(wanted))) note(what);
    };
    const double scale = static_cast<double>(wanted_.scale),
                 power = is_seen(wanted_, at) ? std::exp(scale * at.product_of_q_and_k - at.log_sum) : 0;
    if (!wanted_.backward) return compare("probabilities", Graph::out, power / at.sum_of_row);
    const double gradient = power * (at.product_of_dout_and_v - at.sum_of_row) * scale;
    compare("probabilities again", Graph::dv, power);
    compare("gradients of scores, for keys", Graph::dk, gradient);
    compare("gradients of scores, for queries", Graph::dq, gradient);  // no sum in between: deterministic
  }
  /// f32 between operations, and in them. What goes into a product is bf16, and so is what a product gives
  /// for heads that share keys, before it is added.
  void compare_types() {
    const auto is_added_over_heads = [&](const ToldUse& use) {
      const std::int64_t sum =
          told_.operand(told_.descriptors()[use.operation], CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
      return wanted_.backward && (sum == Graph::dk || sum == Graph::dv);
    };
    const std::vector<ToldUse> uses = told_.uses();
    const auto is_of_a_product = [&](std::int64_t id) {
      return std::any_of(uses.begin(), uses.end(), [&](const ToldUse& use) {
        return use.tensor == id &&
               (use.role == CUDNN_ATTR_OPERATION_MATMUL_ADESC ||
                use.role == CUDNN_ATTR_OPERATION_MATMUL_BDESC ||
                use.role == CUDNN_ATTR_OPERATION_RESHAPE_YDESC || is_added_over_heads(use));
      });
    };
    for (const ToldDescriptor& one : told_.descriptors()) {
      const std::int64_t type = told_.number_of(one, CUDNN_ATTR_TENSOR_DATA_TYPE);
      if (told_.number_of(one, CUDNN_ATTR_TENSOR_IS_VIRTUAL, 0) != 0 && type == CUDNN_DATA_BFLOAT16 &&
          !is_of_a_product(told_.number_of(one, CUDNN_ATTR_TENSOR_UNIQUE_ID)))
        note("types between operations");
      for (const auto name :
           {CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_ATTR_REDUCTION_COMP_TYPE})
        if (told_.number_of(one, name) == CUDNN_DATA_BFLOAT16) note("types of sums");
    }
  }

  const ToldGraph& told_;
  const Graph& wanted_;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> differences(const ToldGraph& told, const AttentionGraph& wanted) {
  return Comparison(told, wanted).all();
}

}  // namespace mindpipe
