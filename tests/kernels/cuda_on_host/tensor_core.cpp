#include <cstring>

#include "cuda_runtime.h"
#include "shadow.h"

/// The tensor core's instructions, from the PTX manual: which lane holds what of mma.m16n8k16 and of
/// ldmatrix.x2.trans.
namespace {

float half_of(std::uint32_t pair, int which) {
  const std::uint32_t bits = which == 0 ? pair << 16 : pair & 0xffff0000u;
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

struct Factors {
  std::uint32_t a[4], b[2];
};

}  // namespace

/// Lane 4 g + t holds elements (g, 2t), (g, 2t + 1), then those 8 rows further, of a those 8 columns further
/// too; of b elements (2t, g), (2t + 1, g), and those 8 rows further.
void mma_m16n8k16(float* c, const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
  const on_host::Lanes& warp = on_host::exchange(Factors{{a[0], a[1], a[2], a[3]}, {b0, b1}}, "mma");
  const unsigned lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  for (unsigned further = 0; further < 2; ++further)  // k = 8 further + 2 thread + half
    for (unsigned thread = 0; thread < 4; ++thread) {
      const Factors left = warp.get<Factors>(4 * g + thread);
      const Factors right[] = {warp.get<Factors>(8 * t + thread), warp.get<Factors>(8 * t + 4 + thread)};
      for (int half = 0; half < 2; ++half)
        for (unsigned i = 0; i < 4; ++i)  // c at row g + i / 2 * 8, column 2 t + i % 2
          c[i] += half_of(left.a[2 * further + i / 2], half) * half_of(right[i % 2].b[further], half);
    }
}

/// Matrix i has its rows at the addresses of lanes 8 i .. 8 i + 7; lane l gets elements (2 (l % 4), l / 4)
/// and (2 (l % 4) + 1, l / 4) of each.
void ldmatrix_x2_trans(const std::uint16_t* row, std::uint32_t& b0, std::uint32_t& b1) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (lane < 16) on_host::note_read(row, 16);
  const on_host::Lanes& rows = on_host::exchange(row, "ldmatrix");
  const auto loaded = [&](int matrix) {
    const auto at = [&](int i) {
      return std::uint32_t{rows.get<const std::uint16_t*>(static_cast<unsigned>(8 * matrix + i))[lane / 4]};
    };
    return at(2 * (lane % 4)) | at(2 * (lane % 4) + 1) << 16;
  };
  b0 = loaded(0);
  b1 = loaded(1);
}
