#pragma once
#include "layers/layer.h"

namespace mindpipe {

/// What a linear map is made of. `outputs` are named pieces (q, k, v), each cut alike when split by `out`.
struct LinearSpec {
  std::string name;            ///< path of the weight below its unit, without ".weight"
  std::vector<Piece> outputs;  ///< names are paths of their own: "attention.q"
  std::int64_t inputs = 0;
  Split split = Split::none;
  bool bias = false;
  double deviation = 0.02;
};

/// y = activation(x w^T + bias), a product for each local logical shard.
/// Split::out: x [.., rows, in] -> y [shard][.., rows, out / T]. Split::in: x [shard][.., rows, in / T] ->
/// [shard][.., rows, out], to be summed by leave(); its bias belongs behind that sum and is therefore not
/// here.
class Linear {
 public:
  Linear(const LayerContext& context, Unit& unit, const LinearSpec& spec);

  /// Saves x where the gradient needs it. `before`, unless none, receives what goes into the activation.
  Tensor forward(const Tensor& x, Tape& tape, Activation activation = Activation::none, Tensor before = {});
  /// dy [shard][..] (Split::in: dy is the same for every shard). Split::out gives [shard][..] gradients of x,
  /// to be summed by leave(); Split::in gives the gradient of its sharded input, through `activation` with
  /// its `before` when asked (fused).
  Tensor backward(const Tensor& dy, Tape& tape, Activation activation = Activation::none, Tensor before = {});

  std::int64_t outputs_per_shard() const { return outputs_; }
  int local_shards() const { return split_ == Split::none ? 1 : context_.tensor.local_shards(); }

 private:
  LayerContext context_;
  Split split_;
  Param weight_, bias_;
  std::int64_t inputs_ = 0, outputs_ = 0;  ///< of a shard
};

}  // namespace mindpipe
