#pragma once
#include "layers/layer.h"

namespace mindpipe {

struct BatchNormSpec {
  std::int64_t channels = 0;
  bool relu = false;  ///< follows the norm
  double epsilon = 1e-5, momentum = 0.1;
  bool runs = true;  ///< keeps running statistics; else evaluations take those of calibrations
};

/// Norm of each channel over all rows of one micro-batch of one logical data shard, its form `whole`: every
/// tensor rank norms the same channels (Split::none), or each shard those that it has (Split::out), which no
/// other needs. Saves x and the statistics; what came out is made again where it is needed. An evaluation
/// norms with running statistics: parameters that follow the mean over a step's micro-batches, as PyTorch's
/// do, the variance the unbiased one. In a supernet nothing runs: each network's means and variances are
/// averaged over the micro-batches that it is calibrated on, and are no parameters.
class BatchNorm {
 public:
  BatchNorm(const LayerContext& context, Unit& unit, const std::string& name, Split split,
            const BatchNormSpec& spec);

  /// x [samples, rows, channels], of Split::out [shard][samples, rows, channels / T]. `y` is as long.
  void forward(const Tensor& x, const Tensor& y, Tape& tape);
  /// What the last forward gave, before its backward.
  void forward_again(const Tensor& y, Tape& tape);
  /// dx = residual + gradient through the norm; dx may be dy, `residual` none. Takes what forward saved.
  void backward(const Tensor& dy, const Tensor& residual, const Tensor& dx, Tape& tape);
  /// What calibrations collect here.
  std::size_t statistics_bytes() const { return spec_.runs ? 0 : bytes_for(collected(), exact()); }

 private:
  int shards() const { return split_ == Split::none ? 1 : context_.tensor.local_shards(); }
  DType exact() const { return context_.dtype == DType::f64 ? DType::f64 : DType::f32; }
  std::int64_t channels() const {
    return spec_.channels / (split_ == Split::none ? 1 : context_.tensor.logical());
  }
  /// A tensor, or its shard, as rows of channels.
  Tensor rows_of(const Tensor& x, int shard) const;
  void find_statistics(const Tensor& rows, const Tensor& statistics, Tape& tape);
  void running_statistics(int shard, const Tensor& statistics, Tape& tape);
  Shape collected() const { return {shards(), 2, channels()}; }
  void collect(const Tensor& statistics, const Tensor& collected, Tape& tape);
  void collected_statistics(int shard, const Tensor& collected, const Tensor& statistics, Tape& tape);
  void norm(const Tensor& x, const Tensor& statistics, const Tensor& y);

  LayerContext context_;
  Split split_;
  BatchNormSpec spec_;
  Param gain_, offset_, mean_, variance_;
};

}  // namespace mindpipe
