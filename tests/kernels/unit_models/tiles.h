#pragma once
#include <cstdint>
#include <cstring>

namespace mindpipe::MINDPIPE_ISA::products {

/// Tiles in plain C++, as the processor's manual has them: an even and an odd chain of multiply-adds from
/// zero, then c += even + odd; denormal numbers count as zero wherever they appear.
class ModelTiles {
 public:
  template <int t>
  void clear() {
    std::memset(tile_[t], 0, sizeof tile_[t]);
  }
  template <int t>
  void load(const void* from, std::int64_t row_bytes) {
    for (int i = 0; i < 16; ++i) std::memcpy(tile_[t][i], static_cast<const char*>(from) + i * row_bytes, 64);
  }
  template <int t>
  void store(void* to, std::int64_t row_bytes) {
    for (int i = 0; i < 16; ++i) std::memcpy(static_cast<char*>(to) + i * row_bytes, tile_[t][i], 64);
  }
  template <int c, int a, int b>
  void multiply() {
    for (int i = 0; i < 16; ++i)
      for (int j = 0; j < 16; ++j) {
        float even = 0, odd = 0;
        for (int p = 0; p < 16; ++p) {
          even = flushed(__builtin_fmaf(lower(tile_[a][i][p]), lower(tile_[b][p][j]), even));
          odd = flushed(__builtin_fmaf(upper(tile_[a][i][p]), upper(tile_[b][p][j]), odd));
        }
        const float sum = flushed(flushed(as_float(tile_[c][i][j])) + flushed(even + odd));
        std::memcpy(&tile_[c][i][j], &sum, 4);
      }
  }

 private:
  static float as_float(std::uint32_t bits) {
    float x;
    std::memcpy(&x, &bits, 4);
    return x;
  }
  static float flushed(float x) { return __builtin_fabsf(x) < 0x1p-126f ? __builtin_copysignf(0.0f, x) : x; }
  static float lower(std::uint32_t pair) { return flushed(as_float(pair << 16)); }
  static float upper(std::uint32_t pair) { return flushed(as_float(pair & 0xffff0000u)); }

  std::uint32_t tile_[8][16][16];
};

}  // namespace mindpipe::MINDPIPE_ISA::products
