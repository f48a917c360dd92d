#pragma once
#include "cpu/simd/vector.h"

namespace mindpipe::MINDPIPE_ISA {

#if MINDPIPE_ISA_LEVEL == 2
/// Rows become columns: lane j of row i goes to lane i of row j.
MINDPIPE_INLINE void transpose(Vector row[lanes]) {
  __m512 a[16], b[16];
  for (int i = 0; i < 16; i += 2) {
    a[i] = _mm512_unpacklo_ps(row[i].part[0], row[i + 1].part[0]);
    a[i + 1] = _mm512_unpackhi_ps(row[i].part[0], row[i + 1].part[0]);
  }
  for (int i = 0; i < 16; i += 4)
    for (int j = 0; j < 2; ++j) {  // b[i + c]: column c of each 4-lane group, rows i .. i+3
      b[i + 2 * j] =
          _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a[i + j]), _mm512_castps_pd(a[i + 2 + j])));
      b[i + 2 * j + 1] =
          _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a[i + j]), _mm512_castps_pd(a[i + 2 + j])));
    }
  for (int c = 0; c < 4; ++c) {
    const __m512 low02 = _mm512_shuffle_f32x4(b[c], b[4 + c], 0x88),
                 low13 = _mm512_shuffle_f32x4(b[c], b[4 + c], 0xdd);
    const __m512 high02 = _mm512_shuffle_f32x4(b[8 + c], b[12 + c], 0x88),
                 high13 = _mm512_shuffle_f32x4(b[8 + c], b[12 + c], 0xdd);
    row[c].part[0] = _mm512_shuffle_f32x4(low02, high02, 0x88);
    row[8 + c].part[0] = _mm512_shuffle_f32x4(low02, high02, 0xdd);
    row[4 + c].part[0] = _mm512_shuffle_f32x4(low13, high13, 0x88);
    row[12 + c].part[0] = _mm512_shuffle_f32x4(low13, high13, 0xdd);
  }
}
#else
/// The square of `part_lanes` parts row[0].part[at], row[1].part[at] ... , transposed.
struct Square {
  FloatPart row[part_lanes];
};
MINDPIPE_INLINE Square transposed(const Vector* row, int at) {
  Square r;
#if MINDPIPE_ISA_LEVEL == 1
  __m256 a[8], b[8];
  for (int i = 0; i < 8; i += 2) {
    a[i] = _mm256_unpacklo_ps(row[i].part[at], row[i + 1].part[at]);
    a[i + 1] = _mm256_unpackhi_ps(row[i].part[at], row[i + 1].part[at]);
  }
  for (int i = 0; i < 8; i += 4)
    for (int j = 0; j < 2; ++j) {
      b[i + 2 * j] = _mm256_shuffle_ps(a[i + j], a[i + 2 + j], 0x44);
      b[i + 2 * j + 1] = _mm256_shuffle_ps(a[i + j], a[i + 2 + j], 0xee);
    }
  for (int c = 0; c < 4; ++c) {
    r.row[c] = _mm256_permute2f128_ps(b[c], b[4 + c], 0x20);
    r.row[4 + c] = _mm256_permute2f128_ps(b[c], b[4 + c], 0x31);
  }
#else
  const __m128 a0 = _mm_unpacklo_ps(row[0].part[at], row[1].part[at]),
               a1 = _mm_unpackhi_ps(row[0].part[at], row[1].part[at]);
  const __m128 a2 = _mm_unpacklo_ps(row[2].part[at], row[3].part[at]),
               a3 = _mm_unpackhi_ps(row[2].part[at], row[3].part[at]);
  r.row[0] = _mm_movelh_ps(a0, a2);
  r.row[1] = _mm_movehl_ps(a2, a0);
  r.row[2] = _mm_movelh_ps(a1, a3);
  r.row[3] = _mm_movehl_ps(a3, a1);
#endif
  return r;
}
/// Rows become columns: lane j of row i goes to lane i of row j.
MINDPIPE_INLINE void transpose(Vector row[lanes]) {
  for (int i = 0; i < parts; ++i)
    for (int j = 0; j <= i; ++j) {
      const Square low = transposed(row + i * part_lanes, j), high = transposed(row + j * part_lanes, i);
      for (int l = 0; l < part_lanes; ++l) {
        row[j * part_lanes + l].part[i] = low.row[l];
        row[i * part_lanes + l].part[j] = high.row[l];
      }
    }
}
#endif

}  // namespace mindpipe::MINDPIPE_ISA
