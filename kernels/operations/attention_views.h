#pragma once
#include <cstdint>

/// Plain numbers only: kernels of every instruction set and of the GPU include this.
namespace mindpipe {

/// Some heads of [samples, rows, all heads, width]: the first element of the first of them, and elements from
/// one sample or row to the next. From head to head it is `width`.
struct HeadsView {
  void* data = nullptr;
  std::int64_t sample = 0, row = 0;
};

/// One question and all its operands, as the kernels see it.
struct AttentionCall {
  std::int64_t samples = 0, query_heads = 0, key_heads = 0, queries = 0, keys = 0, width = 0;
  bool causal = false;
  double scale = 1;
  const std::int32_t* key_lengths = nullptr;  ///< null: all of `keys`
  HeadsView q, k, v, out, dout, dq, dk, dv;
  void* log_sum = nullptr;                              ///< [samples, query heads, queries]
  bool log_sum_is_f64 = false;                          ///< f32 otherwise
  std::uint32_t key[2] = {0, 0}, step = 0, sample = 0;  ///< the dropout stream
  std::uint32_t threshold = 0;                          ///< 0: everything is kept and nothing is drawn
  double kept_scale = 1;                                ///< 1 / (1 - p)
  std::int64_t head_offset = 0;
};

}  // namespace mindpipe
