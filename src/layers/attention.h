#pragma once
#include <optional>

#include "layers/branch.h"
#include "layers/head_norms.h"
#include "layers/linear.h"

namespace mindpipe {

struct AttentionSpec {
  std::int64_t width = 0;
  int heads = 1, key_value_heads = 1;
  std::int64_t head_width = 0;
  bool causal = true, rotary = false, bias = false;
  bool head_norms = false;  ///< RMSNorm of each head of queries and keys
  double norm_epsilon = 1e-6;
  std::vector<double> frequencies = {};  ///< a rotary head's, one for each pair; none: the usual ones
  double dropout = 0;
  double deviation = 0.02, output_deviation = 0.02;
  std::int64_t cache_rows = 0;  ///< generation: how many positions a cache holds
  std::string_view key_lengths =
      {};                     ///< the field that says how many rows of each sample are seen; empty: all
  std::int64_t key_rows = 0;  ///< rows that are no padding up to a multiple of the shards; 0: all of them
};

/// Multi-head attention, heads divided over the shards: what both kinds of it share.
class Attention : public Branch {
 public:
  std::vector<std::string_view> reads() const override {
    if (spec_.key_lengths.empty()) return {};
    return {spec_.key_lengths};
  }

 protected:
  Attention(const LayerContext& context, const std::string& path, const AttentionSpec& spec);
  AttentionParameters parameters(std::int64_t queries, std::int64_t keys, int shard, const Tape& tape) const;
  /// How many of `rows` rows are seen at all. What is causal has its padding behind all that is seen.
  std::int64_t keys_of(std::int64_t rows) const {
    return spec_.key_rows > 0 && !spec_.causal ? spec_.key_rows : rows;
  }
  /// Memory for the gradients of heads, zeros where padding has rows that nobody sees.
  Tensor gradient_of_heads(const Tensor& heads, Tape& tape) const;
  /// Memory for the sums of a softmax, to be saved.
  Tensor keep_log_sum(std::int64_t samples, std::int64_t rows, Tape& tape) const;

  LayerContext context_;
  AttentionSpec spec_;
  int heads_;  ///< heads of a shard

 private:
  std::uint64_t purpose_;
};

/// Attention of a sequence to itself: product to q | k | v, attention, product back. Saves q | k | v, the
/// sums of its softmax, and its output.
class SelfAttention final : public Attention {
 public:
  SelfAttention(const LayerContext& context, Unit& unit, const std::string& name, const std::string& path,
                const AttentionSpec& spec);
  std::size_t cache_bytes(std::int64_t samples) const override;
  Tensor forward(const Tensor& x, const Boundary& in, Tape& tape) override;
  Tensor backward(const Tensor& dy, const Boundary& dout, Tape& tape) override;

 private:
  Shape cache_shape(std::int64_t samples) const;
  /// Copies the new keys and values behind those of the earlier positions; the cache as heads k | v.
  Tensor extend_cache(const Tensor& qkv, int shard, Tape& tape);

  int key_value_heads_;  ///< key and value heads of a shard
  std::optional<HeadNorms> head_norms_;
  Linear qkv_, output_;
};

/// Attention to the encoder's output in the boundary.
class CrossAttention final : public Attention {
 public:
  CrossAttention(const LayerContext& context, Unit& unit, const std::string& name, const std::string& path,
                 const AttentionSpec& spec);
  Tensor forward(const Tensor& x, const Boundary& in, Tape& tape) override;
  Tensor backward(const Tensor& dy, const Boundary& dout, Tape& tape) override;

 private:
  Linear query_, key_value_, output_;
};

/// The product from the stream to `pieces`, of several heads each, and the one from all heads back.
LinearSpec to_heads(const AttentionSpec& spec, std::vector<Piece> pieces);
LinearSpec from_heads(const AttentionSpec& spec, const std::string& name);

}  // namespace mindpipe
