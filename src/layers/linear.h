#pragma once
#include <cmath>

#include "layers/layer.h"

namespace mindpipe {

/// What a linear map is made of.
struct LinearSpec {
  std::vector<Piece> outputs;  ///< by path below the unit, "attention.q"; each cut alike when split by `out`
  std::int64_t inputs = 0;
  Split split = Split::none;
  bool bias = false;
  double deviation = 0.02;
  bool stays = true;  ///< whether somebody's backward reads what comes out
};

/// The map that ends a residual branch: `inputs` numbers, cut, to `width`. Its bias is the block's.
inline LinearSpec branch_output(const std::string& name, std::int64_t inputs, std::int64_t width,
                                double deviation) {
  return {{{name + ".output", width}}, inputs, Split::in, false, deviation};
}

/// The deviation of a product's first weights that keeps variances both ways (Glorot and Bengio).
inline double even_deviation(std::int64_t inputs, std::int64_t outputs) {
  return std::sqrt(2.0 / static_cast<double>(inputs + outputs));
}

/// y = activation(x w^T + bias), a product for each local logical shard.
/// Split::out: x [.., rows, in] -> y [shard][.., rows, out / T]. Split::in: x [shard][.., rows, in / T] ->
/// [shard][.., rows, out], to be summed by leave(); its bias belongs behind that sum and is therefore not
/// here.
class Linear {
 public:
  Linear(const LayerContext& context, Unit& unit, const LinearSpec& spec);

  /// Saves x for the gradient. `before`, unless none, receives what goes into the activation.
  Tensor forward(const Tensor& x, Tape& tape, Activation activation = Activation::none, Tensor before = {});
  /// What forward gives, without saving x: for a layer that makes it again.
  Tensor multiply(const Tensor& x, Tape& tape, Activation activation = Activation::none, Tensor before = {});
  /// dy [shard][..] (Split::in: dy is the same for every shard). Split::out gives [shard][..] gradients of x,
  /// to be summed by leave(); Split::in gives the gradient of its sharded input.
  Tensor backward(const Tensor& dy, Tape& tape) { return backward(dy, tape.restore(), tape); }
  /// The gradients of multiply(), with the x that it had; Split::in goes through `activation` with its
  /// `before` when asked (fused).
  Tensor backward(const Tensor& dy, const Tensor& x, Tape& tape, Activation activation = Activation::none,
                  Tensor before = {});

  int local_shards() const { return split_ == Split::none ? 1 : context_.tensor.local_shards(); }

 private:
  LayerContext context_;
  Split split_;
  Param weight_, bias_;
  std::int64_t inputs_ = 0, outputs_ = 0;  ///< extents of a shard
  bool stays_;                             ///< what comes out
};

}  // namespace mindpipe
