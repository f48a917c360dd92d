#pragma once
#include <array>

#include "layers/layer.h"

namespace mindpipe {

/// RMSNorm of each head of queries and keys, before they are rotated: one gain for all heads of queries, one
/// for those of keys. Works on q | k | v in place; saves what it norms.
class HeadNorms {
 public:
  struct Spec {
    std::int64_t heads = 0, key_value_heads = 0;  ///< heads of a shard
    std::int64_t head_width = 0;
    double epsilon = 1e-6;
  };
  HeadNorms(const LayerContext& context, Unit& unit, const std::string& name, const Spec& spec);

  /// qkv [shard][samples, rows, all heads x width].
  void forward(const Tensor& qkv, Tape& tape);
  /// Turns the gradient of what came out into that of what went in.
  void backward(const Tensor& dqkv, Tape& tape);

 private:
  static constexpr int queries = 0, keys = 1;
  std::int64_t heads(int kind) const { return kind == queries ? spec_.heads : spec_.key_value_heads; }
  std::int64_t first_column(int kind) const { return kind == queries ? 0 : spec_.heads * spec_.head_width; }
  std::int64_t width() const { return (spec_.heads + 2 * spec_.key_value_heads) * spec_.head_width; }
  Tensor statistics_for(const Tensor& heads, Tape& tape) const;
  /// Writes queries, keys and what stands behind them there as q | k | v.
  void put_back(const std::array<Tensor, 2>& normed, const Tensor& qkv, Tape& tape) const;

  LayerContext context_;
  Spec spec_;
  std::array<Param, 2> gains_;
};

}  // namespace mindpipe
