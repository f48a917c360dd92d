#pragma once
#include "backend.h"
#include "calls.h"
#include "operands.h"

/// Checks the operands of Backend's softmax and cross-entropy, whichever device they are on.
namespace mindpipe {

inline LogitShard shard_of(const Tensor& logits, std::int64_t valid, std::int64_t first_column,
                           const char* operation) {
  MP_CHECK(valid >= 0 && valid <= logits.cols(), "{}: {} valid columns of {}", operation, valid,
           logits.cols());
  return {logits.cols(), valid, first_column};
}
/// f32, f64 in gradient checks.
inline void require_wide(const Tensor& t, const char* operation, const char* name) {
  MP_CHECK(t.dtype == DType::f32 || t.dtype == DType::f64, "{}: {} are {} (f32 or f64)", operation, name,
           name_of(t.dtype));
}

inline LogitShard row_maximum_shard(const Tensor& logits, std::int64_t valid, const Tensor& maximum) {
  require_wide(logits, "row_maximum", "logits");
  require(maximum, logits.rows(), logits.dtype, "row_maximum", "maximum");
  return shard_of(logits, valid, 0, "row_maximum");
}

inline LogitShard row_sums_shard(const Tensor& logits, std::int64_t valid, std::int64_t first_column,
                                 const Tensor& targets, const Tensor& maximum, const Tensor& sums,
                                 const Tensor& of_target, const Tensor& total) {
  const std::int64_t rows = logits.rows();
  require_wide(logits, "row_sums", "logits");
  require(targets, rows, DType::i32, "row_sums", "targets");
  require(maximum, rows, logits.dtype, "row_sums", "maximum");
  require(sums, rows, logits.dtype, "row_sums", "sums");
  require(of_target, rows, logits.dtype, "row_sums", "of_target");
  require(total, rows, logits.dtype, "row_sums", "total");
  return shard_of(logits, valid, first_column, "row_sums");
}

/// What a target's logit and each logit of the vocabulary count.
struct TargetShares {
  double of_target, of_each;
};
inline TargetShares target_shares(double factor, double smoothing, std::int64_t vocabulary,
                                  const char* operation) {
  MP_CHECK(vocabulary > 0, "{}: a vocabulary of {}", operation, vocabulary);
  return {factor * (1 - smoothing), factor * smoothing / static_cast<double>(vocabulary)};
}

inline TargetShares cross_entropy_shares(const Tensor& targets, const Tensor& maximum, const Tensor& sums,
                                         const Tensor& of_target, const Tensor& total, double smoothing,
                                         std::int64_t vocabulary, const Tensor& losses) {
  const std::int64_t rows = targets.count();
  require_wide(losses, "cross_entropy", "losses");
  require_dtype(targets, DType::i32, "cross_entropy", "targets");
  require(maximum, rows, losses.dtype, "cross_entropy", "maximum");
  require(sums, rows, losses.dtype, "cross_entropy", "sums");
  require(of_target, rows, losses.dtype, "cross_entropy", "of_target");
  require(total, rows, losses.dtype, "cross_entropy", "total");
  require_count(losses, rows, "cross_entropy", "losses");
  return target_shares(1, smoothing, vocabulary, "cross_entropy");
}

inline LogitShard cross_entropy_backward_shard(const Tensor& logits, std::int64_t valid,
                                               std::int64_t first_column, const Tensor& targets,
                                               const Tensor& maximum, const Tensor& sums,
                                               const Tensor& dlogits) {
  const std::int64_t rows = logits.rows();
  require_dtype(logits, wide(dlogits.dtype), "cross_entropy_backward", "logits");
  require(targets, rows, DType::i32, "cross_entropy_backward", "targets");
  require(maximum, rows, logits.dtype, "cross_entropy_backward", "maximum");
  require(sums, rows, logits.dtype, "cross_entropy_backward", "sums");
  require_count(dlogits, logits.count(), "cross_entropy_backward", "dlogits");
  return shard_of(logits, valid, first_column, "cross_entropy_backward");
}

}  // namespace mindpipe
