#pragma once
#include "cpu/simd/attention_kernels.h"

/// What every attention kernel asks of its call.
namespace mindpipe::MINDPIPE_ISA {

/// Keys of the sample that are not padding.
inline std::int64_t length_of(const AttentionCall& call, std::int64_t sample) {
  if (call.key_lengths == nullptr) return call.keys;
  const std::int64_t n = call.key_lengths[sample];
  return n < 0 ? 0 : n < call.keys ? n : call.keys;
}

/// Keys that the query sees, of `length` that are there.
inline std::int64_t visible_to(const AttentionCall& call, std::int64_t query, std::int64_t length) {
  if (!call.causal) return length;
  const std::int64_t n = query + call.keys - call.queries + 1;
  return n < 0 ? 0 : n < length ? n : length;
}

inline std::int64_t key_head_of(const AttentionCall& call, std::int64_t head) {
  return head * call.key_heads / call.query_heads;
}

/// Where the query's row of the dropout mask begins.
inline std::uint64_t mask_row(const AttentionCall& call, std::int64_t head, std::int64_t query) {
  return static_cast<std::uint64_t>(((call.head_offset + head) * call.queries + query) * call.keys);
}

template <class T>
T* row_of(const HeadsView& view, const AttentionCall& call, std::int64_t sample, std::int64_t row,
          std::int64_t head) {
  return static_cast<T*>(view.data) + sample * view.sample + row * view.row + head * call.width;
}

}  // namespace mindpipe::MINDPIPE_ISA
