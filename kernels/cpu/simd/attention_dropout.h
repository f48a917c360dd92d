#pragma once
#include "cpu/simd/attention_call.h"
#include "cpu/simd/attention_tile.h"

/// The dropout factors of a tile of probabilities: drawn anew wherever they are needed, never kept.
namespace mindpipe::MINDPIPE_ISA::tile {

/// Words 4 block .. 4 block + 3 of the stream for sixteen queries at once, each with a block of its own.
inline void draw_blocks(const AttentionCall& call, std::uint32_t sample, const std::uint64_t* block,
                        std::uint32_t (*words)[lanes]) {
#if MINDPIPE_ISA_LEVEL == 2
  // a 32-bit word in each 64-bit lane; what a product leaves above it is ignored by the next
  __m512i c0[2], c1[2], c2[2], c3[2];
  for (int half = 0; half < 2; ++half) {
    c0[half] = _mm512_loadu_si512(block + half * 8);
    c1[half] = _mm512_srli_epi64(c0[half], 32);
    c2[half] = _mm512_set1_epi64(call.step);
    c3[half] = _mm512_set1_epi64(sample);
  }
  __m512i k0 = _mm512_set1_epi64(call.key[0]), k1 = _mm512_set1_epi64(call.key[1]);
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const __m512i a = _mm512_mul_epu32(c0[half], _mm512_set1_epi64(0xD2511F53)),
                    b = _mm512_mul_epu32(c2[half], _mm512_set1_epi64(0xCD9E8D57));
      c0[half] = _mm512_ternarylogic_epi64(_mm512_srli_epi64(b, 32), c1[half], k0, 0x96);
      c1[half] = b;
      c2[half] = _mm512_ternarylogic_epi64(_mm512_srli_epi64(a, 32), c3[half], k1, 0x96);
      c3[half] = a;
    }
    k0 = _mm512_add_epi32(k0, _mm512_set1_epi64(0x9E3779B9));
    k1 = _mm512_add_epi32(k1, _mm512_set1_epi64(0xBB67AE85));
  }
  const __m512i* const drawn[4] = {c0, c1, c2, c3};
  for (int word = 0; word < 4; ++word)
    for (int half = 0; half < 2; ++half)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(words[word] + half * 8),
                          _mm512_cvtepi64_epi32(drawn[word][half]));
#else
  const std::uint32_t step = call.step, key[2] = {call.key[0], call.key[1]};
  for (int lane = 0; lane < lanes; ++lane) {
    std::uint32_t of_lane[4];
    draw_block(key, step, sample, block[lane], of_lane);
    for (int word = 0; word < 4; ++word) words[word][lane] = of_lane[word];
  }
#endif
}

MINDPIPE_INLINE Integers load_words(const std::uint32_t* words) {
  return load(reinterpret_cast<const std::int32_t*>(words));
}

/// The lanes with this bit.
template <int bit>
MINDPIPE_INLINE Mask bit_of(Integers a) {
  return greater(to_floats(a & broadcast_integer(bit)), zero());
}

/// a < b of numbers without sign; below avx512 by halves, which are exact as floats
MINDPIPE_INLINE Mask below(Integers a, std::uint32_t b) {
#if MINDPIPE_ISA_LEVEL == 2
  return {{_mm512_cmplt_epu32_mask(a.part[0], _mm512_set1_epi32(static_cast<int>(b)))}};
#else
  const Vector high = to_floats(shift_right<16>(a)), low = to_floats(a & broadcast_integer(0xffff));
  const Vector difference = (high - broadcast(static_cast<float>(b >> 16))) * broadcast(131072.0f) +
                            (low - broadcast(static_cast<float>(b & 0xffff)));
  return less(difference, zero());
#endif
}

/// factors[keys][row] = 0 or 1 / (1 - p), for the keys from first_key on that each sixteen queries from
/// first_query on see. The elements of a query's row follow each other along the keys; where keys are no
/// multiple of 4, queries begin at different words of a block, hence the phases.
template <int row = queries>
void draw_factors(const AttentionCall& call, const Extent& extent, std::int64_t sample, std::int64_t head,
                  std::int64_t first_query, std::int64_t first_key, float* factors) {
  alignas(64) std::uint32_t words[keys + 8][lanes];
  alignas(64) std::uint64_t block[lanes];
  alignas(64) std::int32_t phase[lanes];
  const float kept = static_cast<float>(call.kept_scale);
  const std::uint32_t threshold = call.threshold,
                      stream_sample = call.sample + static_cast<std::uint32_t>(sample);
  for (int first = 0; first < extent.columns; first += lanes) {
    const int rows = seen_by(extent, first + lanes - 1);
    std::int32_t phases = 0;
    for (int lane = 0; lane < lanes; ++lane) {
      const std::uint64_t element =
          mask_row(call, head, first_query + first + lane) + static_cast<std::uint64_t>(first_key);
      block[lane] = element / 4;
      phase[lane] = static_cast<std::int32_t>(element % 4);
      phases |= phase[lane];
    }
    for (int j = 0; j < rows + (phases != 0 ? 3 : 0); j += 4) {
      draw_blocks(call, stream_sample, block, words + j);
      for (int lane = 0; lane < lanes; ++lane) ++block[lane];
    }
    const Integers phase_of_lane = load(phase);
    const Mask odd = bit_of<1>(phase_of_lane), second = bit_of<2>(phase_of_lane);
    for (int j = 0; j < rows; ++j) {
      Integers word = load_words(words[j]);
      if (phases != 0) {
        const Integers low = select(odd, load_words(words[j + 1]), word),
                       high = select(odd, load_words(words[j + 3]), load_words(words[j + 2]));
        word = select(second, high, low);
      }
      store(factors + j * row + first, select(below(word, threshold), zero(), broadcast(kept)));
    }
  }
}

}  // namespace mindpipe::MINDPIPE_ISA::tile
