#pragma once
#include "layers/layer.h"

namespace mindpipe {

struct SoftmaxSpec {
  std::int64_t vocabulary = 0, width = 0;
  double deviation = 0.02;
  int uses = 1, use = 0;  ///< uses of the table, when an embedding shares it
  std::string table = "embedding";
  bool bias = false;           ///< one number a word, cut as the table is
  double label_smoothing = 0;  ///< probability spread over the other words
  bool constant_bias = false;  ///< no optimizer moves the bias
};

/// Rows whose logits exist at once: a function of the kind of device and of the vocabulary, so a constant of
/// a run.
inline constexpr std::int64_t usual_token_chunk = 512;
std::int64_t token_chunk(bool wants_many_rows, std::int64_t vocabulary);
/// Rows whose logits' gradients exist at once, one or more such chunks: those of the table are added for as
/// many rows together.
std::int64_t gradient_chunk(bool wants_many_rows, std::int64_t vocabulary, DType dtype);

/// Product with a table of words or classes, cut by rows over the shards, softmax and cross-entropy, in
/// chunks of rows so that the logits of a large micro-batch never exist at once.
class Softmax {
 public:
  /// The bias lives in `unit`: a table that others share is alone in its own.
  Softmax(const LayerContext& context, Unit& table, Unit& unit, const SoftmaxSpec& spec);

  /// Judges rows x [n, width], one for each target of the tape's batch: writes their losses, and adds to the
  /// tape's hits. Those mean nothing where a logit is not a number, which the loss shows.
  void evaluate(const Tensor& x, Tape& tape);
  /// Losses, and gradients: dx [shards, n, width] is to be summed over all shards. Targets and losses are n
  /// numbers each.
  void backward(const Tensor& x, const Tensor& targets, const Tensor& losses, const Tensor& dx, Tape& tape);
  /// Logits of x [n, width]: f32 [shards, n, words of a shard].
  void logits(const Tensor& x, const Tensor& logits);

 private:
  /// What the softmax of one chunk needs beside its logits.
  struct Sums {
    Tensor logits, maximum, sums, of_target, total;
  };
  /// Writes the losses of a chunk too.
  Sums chunk_sums(const Tensor& x, const Tensor& targets, const Tensor& losses, const Tensor& logits,
                  Tape& tape);
  /// Losses, and gradients of the logits of rows [first, first + rows of x) of dlogits [shards, all rows,
  /// words of a shard].
  void chunk_gradients(const Tensor& x, const Tensor& targets, const Tensor& losses, std::int64_t first,
                       const Tensor& dlogits, Tape& tape);
  void find_ranks(const Sums& sums, const Tensor& targets, const Tensor& ranks, Tape& tape);
  std::int64_t shard_rows() const;
  std::int64_t first_column(int shard) const {
    return (context_.tensor.first_shard() + shard) * shard_rows();
  }
  std::int64_t valid(int shard) const;
  void multiply(const Tensor& x, int shard, const Tensor& logits);
  DType exact() const { return context_.dtype == DType::f64 ? DType::f64 : DType::f32; }

  LayerContext context_;
  SoftmaxSpec spec_;
  std::int64_t token_chunk_, gradient_chunk_;
  Param table_, bias_;
};

}  // namespace mindpipe
