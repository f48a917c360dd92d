#pragma once
#include "operations/calls.h"
#include "operations/operands.h"

/// Softmax and cross-entropy over one shard of the vocabulary. logits f32 [n, m] (f64 in gradient checks);
/// columns from `valid` on are padding and never count.
namespace mindpipe {

inline LogitShard shard_of(const Tensor& logits, std::int64_t valid, std::int64_t first_column,
                           const char* operation) {
  MP_CHECK(valid >= 0 && valid <= logits.cols(), "{}: {} valid columns of {}", operation, valid,
           logits.cols());
  return {logits.cols(), valid, first_column};
}
/// Shared memory that a GPU's kernel keeps for itself beside a row of logits.
inline constexpr std::int64_t beside_held_row = 1024;
/// Refuses a dtype that is neither f32 nor, as in gradient checks, f64.
inline void require_wide(const Tensor& t, const char* operation, const char* name) {
  MP_CHECK(t.dtype == DType::f32 || t.dtype == DType::f64, "{}: {} are {} (f32 or f64)", operation, name,
           name_of(t.dtype));
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

/// maximum[n] = the largest of the row.
struct RowMaximumOperands {
  Tensor logits;
  std::int64_t valid = 0;
  Tensor maximum;

  LogitShard checked() const {
    require_wide(logits, "row_maximum", "logits");
    require(maximum, logits.rows(), logits.dtype, "row_maximum", "maximum");
    return shard_of(logits, valid, 0, "row_maximum");
  }
};

/// sums[n] = sum of exp(logit - maximum) in fixed chunks; of_target[n] = logit of the target if the target
/// is in [first_column, first_column + valid), else 0; total[n] = sum of logits (label smoothing reads it).
struct SoftmaxSumsOperands {
  Tensor logits;
  std::int64_t valid = 0, first_column = 0;
  Tensor targets, maximum, sums, of_target, total;

  LogitShard checked() const {
    const std::int64_t rows = logits.rows();
    require_wide(logits, "softmax_sums", "logits");
    require(targets, rows, DType::i32, "softmax_sums", "targets");
    require(maximum, rows, logits.dtype, "softmax_sums", "maximum");
    require(sums, rows, logits.dtype, "softmax_sums", "sums");
    require(of_target, rows, logits.dtype, "softmax_sums", "of_target");
    require(total, rows, logits.dtype, "softmax_sums", "total");
    return shard_of(logits, valid, first_column, "softmax_sums");
  }
};

/// ranks[n] = how many words of this shard come before the target: their logit is larger than `of_target`,
/// the target's own, or equal and the word's number is lower. Added over all shards it is the target's rank:
/// 0 where the largest logit is the target's, and the lowest of several. Any number where the target is
/// negative, or a logit of the row is not a number.
struct TargetRankOperands {
  Tensor logits;
  std::int64_t valid = 0, first_column = 0;
  Tensor targets, of_target, ranks;

  LogitShard checked() const {
    const std::int64_t rows = logits.rows();
    require_wide(logits, "target_rank", "logits");
    require(targets, rows, DType::i32, "target_rank", "targets");
    require(of_target, rows, logits.dtype, "target_rank", "of_target");
    require(ranks, rows, logits.dtype, "target_rank", "ranks");
    MP_CHECK(first_column + valid <= std::int64_t{1} << 24, "target_rank: {} columns (f32 counts to 2^24)",
             first_column + valid);
    return shard_of(logits, valid, first_column, "target_rank");
  }
};

/// hits[Hits] f64 += what is counted in `targets` i32 [samples, ...] and the rank of each. Negative targets
/// do not count, and a sample of such alone is none.
struct CountHitsOperands {
  Tensor targets, ranks, hits;

  TargetList checked() const {
    require_dtype(targets, DType::i32, "count_hits", "targets");
    require_wide(ranks, "count_hits", "ranks");
    require_count(ranks, targets.count(), "count_hits", "ranks");
    require(hits, Hits::places, DType::f64, "count_hits", "hits");
    MP_CHECK(targets.shape.rank > 0 && targets.count() < std::int64_t{1} << 31,
             "count_hits: targets are {} (samples and their targets, below 2^31 in all)",
             to_string(targets.shape));
    return {targets.shape[0], targets.shape[0] == 0 ? 0 : targets.count() / targets.shape[0]};
  }
};

/// losses[n] f32 = maximum + log(sum) - (1 - smoothing) target logit - smoothing / vocabulary * total; 0
/// where the target is negative (ignored).
struct CrossEntropyOperands {
  Tensor targets, maximum, sums, of_target, total;
  double smoothing = 0;
  std::int64_t vocabulary = 0;
  Tensor losses;

  TargetShares checked() const {
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
};

/// dlogits[n,m] (compute dtype) = factor * (softmax - target distribution), 0 for ignored rows and padded
/// columns; may be logits' own memory when of one dtype.
struct CrossEntropyBackwardOperands {
  Tensor logits;
  std::int64_t valid = 0, first_column = 0;
  Tensor targets, maximum, sums;
  double factor = 1, smoothing = 0;
  std::int64_t vocabulary = 0;
  Tensor dlogits;

  LogitShard checked() const {
    const std::int64_t rows = logits.rows();
    require_dtype(logits, wide(dlogits.dtype), "cross_entropy_backward", "logits");
    require(targets, rows, DType::i32, "cross_entropy_backward", "targets");
    require(maximum, rows, logits.dtype, "cross_entropy_backward", "maximum");
    require(sums, rows, logits.dtype, "cross_entropy_backward", "sums");
    require_count(dlogits, logits.count(), "cross_entropy_backward", "dlogits");
    return shard_of(logits, valid, first_column, "cross_entropy_backward");
  }
  TargetShares shares() const {
    return target_shares(factor, smoothing, vocabulary, "cross_entropy_backward");
  }
};

/// Losses of a whole vocabulary, and the gradient of its logits: row_maximum, softmax_sums, cross_entropy and
/// cross_entropy_backward. `maximum` [n] and `sums` [3, n] are memory for what those leave for each other.
struct SoftmaxCrossEntropyOperands {
  Tensor logits;
  std::int64_t valid = 0;
  Tensor targets;
  double factor = 1, smoothing = 0;
  std::int64_t vocabulary = 0;
  Tensor maximum, sums, losses, dlogits;

  RowMaximumOperands largest() const { return {logits, valid, maximum}; }
  SoftmaxSumsOperands added() const {
    return {logits, valid, 0, targets, maximum, sums.at(0), sums.at(1), sums.at(2)};
  }
  CrossEntropyOperands loss() const {
    return {targets, maximum, sums.at(0), sums.at(1), sums.at(2), smoothing, vocabulary, losses};
  }
  CrossEntropyBackwardOperands gradient() const {
    return {logits, valid, 0, targets, maximum, sums.at(0), factor, smoothing, vocabulary, dlogits};
  }
  LogitShard checked() const {
    require_count(sums, 3 * logits.rows(), "softmax_cross_entropy", "sums");
    added().checked();
    loss().checked();
    return gradient().checked();
  }
  /// Calls visit(name, operands) for the operations that it is together.
  template <class Visit>
  void in_turn(const Visit& visit) const {
    visit("row_maximum", largest());
    visit("softmax_sums", added());
    visit("cross_entropy", loss());
    visit("cross_entropy_backward", gradient());
  }
};

}  // namespace mindpipe
