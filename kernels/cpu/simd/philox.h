#pragma once
#include "cpu/simd/vector.h"

/// Philox4x32-10 of core/random.h on many blocks at once, bit for bit the same words.
namespace mindpipe::MINDPIPE_ISA {

/// Blocks that one register holds: one 64-bit lane each, whose lower half counts. A product of two lower
/// halves fills the lane: its two words are the product itself and the product shifted down.
constexpr int philox_lanes = part_lanes / 2;
constexpr int philox_group = 16;  ///< blocks that are drawn at once

struct PhiloxStream {
  std::uint32_t key[2], step, sample;
};

/// The words of blocks [block, block + 2 philox_lanes): two registers, one hides the other's latency.
MINDPIPE_INLINE void philox_pair(const PhiloxStream& stream, std::uint64_t block, std::uint32_t* words) {
  // Counters in the order in which the final interleaving puts blocks side by side.
  alignas(64) static constexpr std::int64_t orders[3][8] = {{0, 1}, {0, 2, 1, 3}, {0, 4, 1, 5, 2, 6, 3, 7}};
  constexpr const std::int64_t* order = orders[MINDPIPE_ISA_LEVEL];
  IntegerPart c0[2], c1[2], c2[2], c3[2];
  for (int i = 0; i < 2; ++i) {
    alignas(64) std::uint64_t blocks[philox_lanes];
    for (int lane = 0; lane < philox_lanes; ++lane)
      blocks[lane] = block + static_cast<std::uint64_t>(i * philox_lanes + order[lane]);
    std::memcpy(&c0[i], blocks, sizeof c0[i]);
    c1[i] = MINDPIPE_MM(srli_epi64)(c0[i], 32);
    c2[i] = MINDPIPE_MM(set1_epi32)(static_cast<int>(stream.step));
    c3[i] = MINDPIPE_MM(set1_epi32)(static_cast<int>(stream.sample));
  }
  const auto a = MINDPIPE_MM(set1_epi32)(static_cast<int>(0xD2511F53u)),
             b = MINDPIPE_MM(set1_epi32)(static_cast<int>(0xCD9E8D57u));
  std::uint32_t k0 = stream.key[0], k1 = stream.key[1];
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
    const auto key0 = MINDPIPE_MM(set1_epi32)(static_cast<int>(k0)),
               key1 = MINDPIPE_MM(set1_epi32)(static_cast<int>(k1));
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      const auto p = MINDPIPE_MM(mul_epu32)(c0[i], a), q = MINDPIPE_MM(mul_epu32)(c2[i], b);
      c0[i] = MINDPIPE_SI(xor)(MINDPIPE_SI(xor)(MINDPIPE_MM(srli_epi64)(q, 32), c1[i]), key0);
      c1[i] = q;
      c2[i] = MINDPIPE_SI(xor)(MINDPIPE_SI(xor)(MINDPIPE_MM(srli_epi64)(p, 32), c3[i]), key1);
      c3[i] = p;
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  const auto lower = MINDPIPE_MM(srli_epi64)(MINDPIPE_MM(set1_epi32)(-1), 32);
  for (int i = 0; i < 2; ++i) {
    const auto low = MINDPIPE_SI(or)(MINDPIPE_SI(and)(c0[i], lower), MINDPIPE_MM(slli_epi64)(c1[i], 32));
    const auto high = MINDPIPE_SI(or)(MINDPIPE_SI(and)(c2[i], lower), MINDPIPE_MM(slli_epi64)(c3[i], 32));
    const auto first = MINDPIPE_MM(unpacklo_epi64)(low, high),
               second = MINDPIPE_MM(unpackhi_epi64)(low, high);
    std::memcpy(words + (2 * i) * part_lanes, &first, sizeof first);
    std::memcpy(words + (2 * i + 1) * part_lanes, &second, sizeof second);
  }
}

/// The 64 words of blocks [block, block + philox_group).
MINDPIPE_INLINE void philox_words(const PhiloxStream& stream, std::uint64_t block, std::uint32_t* words) {
  for (int done = 0; done < philox_group; done += 2 * philox_lanes)
    philox_pair(stream, block + static_cast<std::uint64_t>(done), words + 4 * done);
}

}  // namespace mindpipe::MINDPIPE_ISA
