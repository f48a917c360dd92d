#pragma once
#include "cuda/device/group.h"
#include "operations/calls.h"

/// Philox4x32-10 of core/random.h, bit for bit the same words.
namespace mindpipe::cuda {

struct Words {
  std::uint32_t w[4];
};

/// Words 4 block .. 4 block + 3 of the stream {.., sample}.
__device__ inline Words philox(const MaskRows& mask, std::uint32_t sample, std::uint64_t block) {
  std::uint32_t c0 = static_cast<std::uint32_t>(block), c1 = static_cast<std::uint32_t>(block >> 32),
                c2 = mask.step, c3 = sample;
  std::uint32_t k0 = mask.key[0], k1 = mask.key[1];
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const std::uint32_t a_low = 0xD2511F53u * c0, a_high = __umulhi(0xD2511F53u, c0),
                        b_low = 0xCD9E8D57u * c2, b_high = __umulhi(0xCD9E8D57u, c2);
    c0 = b_high ^ c1 ^ k0;
    c1 = b_low;
    c2 = a_high ^ c3 ^ k1;
    c3 = a_low;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

/// The word of one element, which need not begin a block.
__device__ inline std::uint32_t philox_word(const MaskRows& mask, std::uint32_t sample,
                                            std::uint64_t element) {
  const Words words = philox(mask, sample, element / 4);
  const unsigned i = static_cast<unsigned>(element % 4);
  return i == 0 ? words.w[0] : i == 1 ? words.w[1] : i == 2 ? words.w[2] : words.w[3];
}

/// Which of `size` elements of row `row` from column j on are kept.
template <int size>
struct Kept {
  bool keep[size];

  __device__ Kept(const MaskRows& mask, int64_t row, int64_t j, int64_t rows_before) {
    const std::uint32_t sample = mask.sample + static_cast<std::uint32_t>(rows_before);
    const std::uint64_t element =
        static_cast<std::uint64_t>((mask.first + row) * mask.whole_cols + mask.first_col + j);
    if (size % 4 == 0 && element % 4 == 0) {
#pragma unroll
      for (int b = 0; b < size / 4; ++b) {
        const Words words = philox(mask, sample, element / 4 + static_cast<std::uint64_t>(b));
#pragma unroll
        for (int k = 0; k < 4; ++k) keep[4 * b + k] = words.w[k] >= mask.threshold;
      }
    } else {
#pragma unroll
      for (int k = 0; k < size; ++k)
        keep[k] = philox_word(mask, sample, element + static_cast<std::uint64_t>(k)) >= mask.threshold;
    }
  }
};
/// The mask from column j of row n of [samples, rows, cols] of the mask's part of a sequence.
template <int size>
__device__ inline Kept<size> kept(const MaskRows& mask, int64_t n, int64_t j) {
  const int64_t sample = quotient(n, mask.rows);
  return Kept<size>(mask, n - sample * mask.rows, j, sample);
}

}  // namespace mindpipe::cuda
