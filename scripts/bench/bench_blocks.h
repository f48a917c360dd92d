#pragma once
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

/// What the programs that measure products share: memory, numbers, a clock.
namespace mindpipe::bench {

/// Memory for values in large pages, where the system grants them, as the program's own.
template <class T>
struct Block {
  static constexpr std::size_t page = std::size_t{2} << 20;
  std::unique_ptr<T[], void (*)(void*)> memory;
  explicit Block(std::int64_t count)
      : memory(static_cast<T*>(std::aligned_alloc(page, bytes_of(count))), std::free) {
    madvise(memory.get(), bytes_of(count), MADV_HUGEPAGE);
  }
  T* data() const { return memory.get(); }

 private:
  static std::size_t bytes_of(std::int64_t count) {
    return (static_cast<std::size_t>(count) * sizeof(T) / page + 1) * page;
  }
};

/// Numbers from -0.5 to 0.5, of which none is special; the same each time.
class RandomNumbers {
 public:
  float next() {
    state_ = state_ * 1664525u + 1013904223u;
    return static_cast<float>(state_ >> 8) * 0x1p-24f - 0.5f;
  }

 private:
  std::uint32_t state_ = 1;
};

/// A number's bf16, rounded towards zero.
inline std::uint16_t upper_half(float number) {
  std::uint32_t bits;
  std::memcpy(&bits, &number, 4);
  return static_cast<std::uint16_t>(bits >> 16);
}
inline float pair_of(std::uint16_t lower, std::uint16_t upper) {
  const std::uint32_t bits = lower | static_cast<std::uint32_t>(upper) << 16;
  float pair;
  std::memcpy(&pair, &bits, 4);
  return pair;
}

/// Seconds that this thread has computed.
inline double cpu_seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

inline double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v.empty() ? 0 : v[v.size() / 2];
}

}  // namespace mindpipe::bench
