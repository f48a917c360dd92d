#include "instruction_peaks.h"

#include <immintrin.h>

#include <vector>

#include "bench_blocks.h"
#define MINDPIPE_ISA bench
#include "cpu/simd/products_amx_tiles.h"

namespace mindpipe::bench {
namespace {

// The register tiles of our products: rows of a, each value to all lanes, by vectors of b.
constexpr int rows_avx512 = 14, rows_avx2 = 6, vectors = 2;
constexpr int depths = 64;     // with them the operands of a loop take at most 12 KiB
constexpr int tile_steps = 8;  // of four tiles of 1 KiB: 32 of the 48 KiB of the first cache
constexpr int tile_bytes = 1024;

/// Random f32 numbers, or pairs of bf16 numbers, of 32 KiB, which stay in the first cache.
struct Words {
  Block<float> block{tile_steps * 4 * tile_bytes / 4};
  explicit Words(bool pairs) {
    RandomNumbers numbers;
    for (std::int64_t i = 0; i < tile_steps * 4 * tile_bytes / 4; ++i) {
      const float first = numbers.next(), second = numbers.next();
      block.data()[i] = pairs ? pair_of(upper_half(first), upper_half(second)) : first;
    }
  }
  const float* b() const { return block.data(); }
  const float* a() const { return block.data() + depths * vectors * 16; }
  const char* tile(int step, int which) const {
    return reinterpret_cast<const char*>(block.data()) + (step * 4 + which) * tile_bytes;
  }
};

struct MultiplyAdd {
  static constexpr double operations = 2;  // a lane
  __attribute__((target("avx512f"), always_inline)) static void meet(__m512 x, __m512 y, __m512& sum) {
    sum = _mm512_fmadd_ps(x, y, sum);
  }
};
struct Pairs {
  static constexpr double operations = 4;
  __attribute__((target("avx512f"), always_inline)) static void meet(__m512 x, __m512 y, __m512& sum) {
    __asm__ volatile("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y));
  }
};

/// Each loop runs `turns` times and returns how many operations that were. What it computes with is opaque to
/// the compiler, or equal chains would become one, and loads would be folded into instructions.
template <class Arithmetic>
__attribute__((target("avx512f"))) double raw_avx512(const Words& words, int turns) {
  constexpr int chains = 24;
  __m512 sum[chains], x = _mm512_set1_ps(words.a()[0]), y = _mm512_set1_ps(words.b()[0]);
#pragma GCC unroll 24
  for (auto& s : sum) __asm__ volatile("" : "=v"(s) : "0"(y));
  for (int i = 0; i < turns * depths; ++i) {
#pragma GCC unroll 24
    for (auto& s : sum) Arithmetic::meet(x, y, s);
  }
#pragma GCC unroll 24
  for (auto& s : sum) __asm__ volatile("" ::"v"(s));
  return Arithmetic::operations * 16 * chains * depths * turns;
}
template <class Arithmetic>
__attribute__((target("avx512f"))) double real_avx512(const Words& words, int turns) {
  __m512 sum[rows_avx512][vectors];
#pragma GCC unroll 14
  for (auto& of_row : sum)
    for (auto& s : of_row) __asm__ volatile("vxorps %0, %0, %0" : "=v"(s));
  for (int turn = 0; turn < turns; ++turn)
    for (int p = 0; p < depths; ++p) {
      __m512 y[vectors];
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v)
        __asm__ volatile("vmovaps %1, %0"
                         : "=v"(y[v])
                         : "m"(*reinterpret_cast<const __m512*>(words.b() + (p * vectors + v) * 16)));
#pragma GCC unroll 14
      for (int i = 0; i < rows_avx512; ++i) {
        __m512 x;
        __asm__ volatile("vbroadcastss %1, %0" : "=v"(x) : "m"(words.a()[p * rows_avx512 + i]));
#pragma GCC unroll 2
        for (int v = 0; v < vectors; ++v) Arithmetic::meet(x, y[v], sum[i][v]);
      }
    }
#pragma GCC unroll 14
  for (auto& of_row : sum)
    for (auto& s : of_row) __asm__ volatile("" ::"v"(s));
  return Arithmetic::operations * 16 * rows_avx512 * vectors * depths * turns;
}

__attribute__((target("avx2,fma"))) double raw_avx2(const Words& words, int turns) {
  constexpr int chains = 12;
  __m256 sum[chains], x = _mm256_set1_ps(words.a()[0]), y = _mm256_set1_ps(words.b()[0]);
#pragma GCC unroll 12
  for (auto& s : sum) __asm__ volatile("" : "=x"(s) : "0"(y));
  for (int i = 0; i < turns * depths; ++i) {
#pragma GCC unroll 12
    for (auto& s : sum) s = _mm256_fmadd_ps(s, x, y);
  }
#pragma GCC unroll 12
  for (auto& s : sum) __asm__ volatile("" ::"x"(s));
  return 2.0 * 8 * chains * depths * turns;
}
__attribute__((target("avx2,fma"))) double real_avx2(const Words& words, int turns) {
  __m256 sum[rows_avx2][vectors];
#pragma GCC unroll 6
  for (auto& of_row : sum)
    for (auto& s : of_row) __asm__ volatile("vxorps %0, %0, %0" : "=x"(s));
  for (int turn = 0; turn < turns; ++turn)
    for (int p = 0; p < depths; ++p) {
      __m256 y[vectors];
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v)
        __asm__ volatile("vmovaps %1, %0"
                         : "=x"(y[v])
                         : "m"(*reinterpret_cast<const __m256*>(words.b() + (p * vectors + v) * 8)));
#pragma GCC unroll 6
      for (int i = 0; i < rows_avx2; ++i) {
        __m256 x;
        __asm__ volatile("vbroadcastss %1, %0" : "=x"(x) : "m"(words.a()[p * rows_avx2 + i]));
#pragma GCC unroll 2
        for (int v = 0; v < vectors; ++v) sum[i][v] = _mm256_fmadd_ps(x, y[v], sum[i][v]);
      }
    }
#pragma GCC unroll 6
  for (auto& of_row : sum)
    for (auto& s : of_row) __asm__ volatile("" ::"x"(s));
  return 2.0 * 8 * rows_avx2 * vectors * depths * turns;
}

/// Four tiles of sums that meet two tiles of a and two of b.
struct FourSums {
  products::ProcessorTiles tiles;
  FourSums() {
    tiles.clear<0>();
    tiles.clear<1>();
    tiles.clear<2>();
    tiles.clear<3>();
  }
  static double operations(int turns) { return 4.0 * 2 * 16 * 16 * 32 * tile_steps * turns; }
};
double raw_tiles(const Words&, int turns) {
  FourSums sums;
  sums.tiles.clear<4>();
  sums.tiles.clear<5>();
  sums.tiles.clear<6>();
  sums.tiles.clear<7>();
  for (int i = 0; i < turns * tile_steps; ++i) {
    sums.tiles.multiply<0, 4, 6>();
    sums.tiles.multiply<1, 4, 7>();
    sums.tiles.multiply<2, 5, 6>();
    sums.tiles.multiply<3, 5, 7>();
  }
  return FourSums::operations(turns);
}
double real_tiles(const Words& words, int turns) {
  FourSums sums;
  for (int turn = 0; turn < turns; ++turn)
    for (int step = 0; step < tile_steps; ++step) {
      sums.tiles.load<6>(words.tile(step, 0), 64);
      sums.tiles.load<4>(words.tile(step, 1), 64);
      sums.tiles.load<7>(words.tile(step, 2), 64);
      sums.tiles.multiply<0, 4, 6>();
      sums.tiles.multiply<1, 4, 7>();
      sums.tiles.load<5>(words.tile(step, 3), 64);
      sums.tiles.multiply<2, 5, 6>();
      sums.tiles.multiply<3, 5, 7>();
    }
  return FourSums::operations(turns);
}

using Loop = double (*)(const Words&, int turns);
struct Loops {
  Loop raw, real;
};
Loops loops_of(Unit unit, Isa isa) {
  if (unit == Unit::tiles) return {raw_tiles, real_tiles};
  if (unit == Unit::pairs) return {raw_avx512<Pairs>, real_avx512<Pairs>};
  if (isa >= Isa::avx512) return {raw_avx512<MultiplyAdd>, real_avx512<MultiplyAdd>};
  return {raw_avx2, real_avx2};
}

double rate_of(Loop loop, const Words& words) {
  constexpr double least_seconds = 0.01;  // the clock takes milliseconds to settle
  double done = 0, seconds = 0;
  for (const double start = cpu_seconds(); seconds < least_seconds; seconds = cpu_seconds() - start)
    done += loop(words, 500);
  return done / seconds * 1e-9;
}

}  // namespace

const char* name_of(Unit unit) {
  constexpr const char* names[] = {"multiply-add", "pairs", "tiles"};
  return names[static_cast<int>(unit)];
}

Unit unit_for_bf16(Isa isa) {
  if (isa == Isa::avx512_amx) return Unit::tiles;
  return isa == Isa::avx512_bf16 ? Unit::pairs : Unit::multiply_add;
}

Peak measure_peak(Unit unit, Isa isa) {
  const Words words(unit != Unit::multiply_add);
  const Loops loops = loops_of(unit, isa);
  const double raw = rate_of(loops.raw, words);
  return {raw, rate_of(loops.real, words)};
}

}  // namespace mindpipe::bench
