#pragma once
#include <cstdint>

/// Eight tiles of 16 rows of 64 bytes and the product of bf16 tiles.
namespace mindpipe::MINDPIPE_ISA::products {

/// The tiles of the processor (AMX), as instructions, which must not move across accesses to memory.
struct ProcessorTiles {
  struct alignas(64) Setting {
    std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
    std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  };
  ProcessorTiles() {
    const Setting setting;
    __asm__ volatile("ldtilecfg %0" ::"m"(setting) : "memory");
  }
  ProcessorTiles(const ProcessorTiles&) = delete;
  ProcessorTiles& operator=(const ProcessorTiles&) = delete;
  ~ProcessorTiles() { __asm__ volatile("tilerelease" ::: "memory"); }

  template <int t>
  void clear() {
    __asm__ volatile("tilezero %%tmm%c0" ::"n"(t));
  }
  template <int t>
  void load(const void* from, std::int64_t row_bytes) {
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(row_bytes), "n"(t) : "memory");
  }
  template <int t>
  void store(void* to, std::int64_t row_bytes) {
    __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(row_bytes), "n"(t) : "memory");
  }
  /// Tile c += a b, with a as 16 rows of 32 values and b as 16 pairs of rows, the pairs' values side by side.
  template <int c, int a, int b>
  void multiply() {
    __asm__ volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"n"(c), "n"(a), "n"(b));
  }
};

}  // namespace mindpipe::MINDPIPE_ISA::products
