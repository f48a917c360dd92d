#pragma once
#include "operations/attention_views.h"
#include "operations/elementwise.h"

namespace mindpipe {

/// What one attention computes: queries see keys [0, keys) of their sample, fewer where causal or padded.
struct AttentionParameters {
  std::int64_t queries = 0, keys = 0;  ///< rows in use of each sample (a cache may be longer)
  bool causal = false;                 ///< query i sees keys 0 .. i + keys - queries
  float scale = 1;
  /// i32 [samples], or none: keys at or beyond it are padding. 0: the row's output is zero.
  Tensor key_lengths = {};
  Dropout dropout = {};          ///< element = ((head_offset + head) * queries + query) * keys + key
  std::int64_t head_offset = 0;  ///< number of this shard's first query head among all heads
};

/// out[samples, queries, heads, width] = softmax(scale q k^T) v, zeros where no key is seen. Query head h
/// reads key head h * k.count / q.count. log_sum[samples, heads, queries] f32 receives log(sum(exp)).
struct AttentionOperands {
  AttentionParameters parameters;
  Heads q, k, v;
  Tensor log_sum, out;

  AttentionCall checked() const;
};

/// The gradients of the heads are written into the like-shaped dq, dk, dv (which may be parts of one tensor).
struct AttentionBackwardOperands {
  AttentionParameters parameters;
  Heads q, k, v;
  Tensor log_sum, out, dout;
  Heads dq, dk, dv;

  AttentionOperands forward() const { return {parameters, q, k, v, log_sum, out}; }
  AttentionCall checked() const;
};

}  // namespace mindpipe
