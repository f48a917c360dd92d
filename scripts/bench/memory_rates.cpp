#include "memory_rates.h"

#include <emmintrin.h>

namespace mindpipe::bench {
namespace {

constexpr std::int64_t block_bytes = std::int64_t{128} << 20;

void read_all(const char* from) {
  __m128i sum[4] = {};
  for (std::int64_t i = 0; i < block_bytes; i += 64) {
#pragma GCC unroll 4
    for (int lane = 0; lane < 4; ++lane)
      sum[lane] =
          _mm_xor_si128(sum[lane], _mm_load_si128(reinterpret_cast<const __m128i*>(from + i + 16 * lane)));
  }
  for (auto& s : sum) __asm__ volatile("" ::"x"(s));
}

}  // namespace

MemoryRates::MemoryRates() : from_(block_bytes), to_(block_bytes) {
  std::memset(from_.data(), 1, block_bytes);
  std::memset(to_.data(), 2, block_bytes);
}

void MemoryRates::measure() {
  const double start = cpu_seconds();
  std::memcpy(to_.data(), from_.data(), block_bytes);
  const double copied = cpu_seconds();
  read_all(from_.data());
  copies_.push_back(2e-9 * block_bytes / (copied - start));
  reads_.push_back(1e-9 * block_bytes / (cpu_seconds() - copied));
}

}  // namespace mindpipe::bench
