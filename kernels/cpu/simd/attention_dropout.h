#pragma once
#include "cpu/simd/attention_call.h"
#include "cpu/simd/attention_tile.h"

/// The dropout factors of a tile of probabilities: drawn anew wherever they are needed, never kept.
namespace mindpipe::MINDPIPE_ISA::tile {

/// Words 4 block .. 4 block + 3 of the stream for sixteen queries at once, each with a block of its own.
inline void draw_blocks(const AttentionCall& call, std::uint32_t sample, const std::uint64_t* block, std::uint32_t (*words)[lanes]) {
#if MINDPIPE_ISA_LEVEL == 2
  // a 32-bit word in each 64-bit lane; what a product leaves above it is ignored by the next
  for (int half = 0; half < lanes; half += 8) {
    __m512i c0 = _mm512_loadu_si512(block + half), c1 = _mm512_srli_epi64(c0, 32);
    __m512i c2 = _mm512_set1_epi64(call.step), c3 = _mm512_set1_epi64(sample);
    __m512i k0 = _mm512_set1_epi64(call.key[0]), k1 = _mm512_set1_epi64(call.key[1]);
#pragma GCC unroll 10
    for (int round = 0; round < 10; ++round) {
      const __m512i a = _mm512_mul_epu32(c0, _mm512_set1_epi64(0xD2511F53)), b = _mm512_mul_epu32(c2, _mm512_set1_epi64(0xCD9E8D57));
      c0 = _mm512_ternarylogic_epi64(_mm512_srli_epi64(b, 32), c1, k0, 0x96);
      c1 = b;
      c2 = _mm512_ternarylogic_epi64(_mm512_srli_epi64(a, 32), c3, k1, 0x96);
      c3 = a;
      k0 = _mm512_add_epi32(k0, _mm512_set1_epi64(0x9E3779B9));
      k1 = _mm512_add_epi32(k1, _mm512_set1_epi64(0xBB67AE85));
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(words[0] + half), _mm512_cvtepi64_epi32(c0));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(words[1] + half), _mm512_cvtepi64_epi32(c1));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(words[2] + half), _mm512_cvtepi64_epi32(c2));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(words[3] + half), _mm512_cvtepi64_epi32(c3));
  }
#else
  const std::uint32_t step = call.step, key0 = call.key[0], key1 = call.key[1];
  for (int lane = 0; lane < lanes; ++lane) {
    std::uint32_t c0 = static_cast<std::uint32_t>(block[lane]), c1 = static_cast<std::uint32_t>(block[lane] >> 32), c2 = step, c3 = sample;
    std::uint32_t k0 = key0, k1 = key1;
#pragma GCC unroll 10
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t a = std::uint64_t{0xD2511F53u} * c0, b = std::uint64_t{0xCD9E8D57u} * c2;
      c0 = static_cast<std::uint32_t>(b >> 32) ^ c1 ^ k0;
      c1 = static_cast<std::uint32_t>(b);
      c2 = static_cast<std::uint32_t>(a >> 32) ^ c3 ^ k1;
      c3 = static_cast<std::uint32_t>(a);
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    words[0][lane] = c0;
    words[1][lane] = c1;
    words[2][lane] = c2;
    words[3][lane] = c3;
  }
#endif
}

/// factors[keys][queries] = 0 or 1 / (1 - p), for the keys from first_key on that each sixteen queries from first_query on see.
/// The elements of a query's row follow each other along the keys; where keys are no multiple of 4, queries begin at different
/// words of a block, hence the phases.
inline void draw_factors(const AttentionCall& call, const Extent& extent, std::int64_t sample, std::int64_t head, std::int64_t first_query, std::int64_t first_key,
                         float* factors) {
  alignas(64) std::uint32_t words[keys + 8][lanes];
  alignas(64) std::uint64_t block[lanes];
  alignas(64) std::int32_t phase[lanes];
  const float kept = static_cast<float>(call.kept_scale);
  const std::uint32_t threshold = call.threshold, stream_sample = call.sample + static_cast<std::uint32_t>(sample);
  for (int first = 0; first < extent.columns; first += lanes) {
    const int rows = seen_by(extent, first + lanes - 1);
    std::int32_t phases = 0;
    for (int lane = 0; lane < lanes; ++lane) {
      const std::uint64_t element = mask_row(call, head, first_query + first + lane) + static_cast<std::uint64_t>(first_key);
      block[lane] = element / 4;
      phase[lane] = static_cast<std::int32_t>(element % 4);
      phases |= phase[lane];
    }
    for (int j = 0; j < rows + (phases != 0 ? 3 : 0); j += 4) {
      draw_blocks(call, stream_sample, block, words + j);
      for (int lane = 0; lane < lanes; ++lane) ++block[lane];
    }
    for (int j = 0; j < rows; ++j) {
      float* to = factors + j * queries + first;
      if (phases == 0)
        for (int lane = 0; lane < lanes; ++lane) to[lane] = words[j][lane] >= threshold ? kept : 0.0f;
      else
        for (int lane = 0; lane < lanes; ++lane) {
          const std::uint32_t w0 = words[j][lane], w1 = words[j + 1][lane], w2 = words[j + 2][lane], w3 = words[j + 3][lane];
          const std::uint32_t low = (phase[lane] & 1) != 0 ? w1 : w0, high = (phase[lane] & 1) != 0 ? w3 : w2;
          to[lane] = ((phase[lane] & 2) != 0 ? high : low) >= threshold ? kept : 0.0f;
        }
    }
  }
}

}  // namespace mindpipe::MINDPIPE_ISA::tile
