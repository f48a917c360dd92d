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

/// Words 4 block .. 4 block + 3 of a dropout stream: core/random.h's philox.
inline __attribute__((always_inline)) void draw_block(const std::uint32_t (&key)[2], std::uint32_t step,
                                                      std::uint32_t sample, std::uint64_t block,
                                                      std::uint32_t (&c)[4]) {
  c[0] = static_cast<std::uint32_t>(block);
  c[1] = static_cast<std::uint32_t>(block >> 32);
  c[2] = step;
  c[3] = sample;
  std::uint32_t k0 = key[0], k1 = key[1];
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53u} * c[0], b = std::uint64_t{0xCD9E8D57u} * c[2];
    c[0] = static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ k0;
    c[1] = static_cast<std::uint32_t>(b);
    c[2] = static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ k1;
    c[3] = static_cast<std::uint32_t>(a);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
}

template <class T>
T* row_of(const HeadsView& view, const AttentionCall& call, std::int64_t sample, std::int64_t row,
          std::int64_t head) {
  return static_cast<T*>(view.data) + sample * view.sample + row * view.row + head * call.width;
}

}  // namespace mindpipe::MINDPIPE_ISA
