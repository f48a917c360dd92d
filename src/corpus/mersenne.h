#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace mindpipe {

/// The Mersenne twister MT19937 (Matsumoto and Nishimura, 1998), seeded with one 32-bit number: the words
/// that existing tools draw when they order the samples of a token file.
class Mersenne {
 public:
  explicit Mersenne(std::uint32_t seed);
  std::uint32_t word();
  /// A number in [0, largest]: words under the smallest mask of ones that covers it, until one is not beyond.
  std::uint64_t up_to(std::uint64_t largest);
  /// Shuffles n values: for i = n-1 .. 1, swaps element i with element up_to(i). Numbers are drawn ahead, so
  /// that memory brings elements together: of millions nearly all the time would go by waiting for each.
  template <class T>
  void shuffle(T* values, std::int64_t n) {
    std::array<std::uint64_t, 64> partners;
    for (std::int64_t i = n - 1; i > 0;) {
      const std::int64_t count = std::min<std::int64_t>(i, partners.size());
      for (std::int64_t k = 0; k < count; ++k) {
        partners[k] = up_to(static_cast<std::uint64_t>(i - k));
        __builtin_prefetch(values + partners[k], 1);
      }
      for (std::int64_t k = 0; k < count; ++k) std::swap(values[i - k], values[partners[k]]);
      i -= count;
    }
  }

 private:
  void refill();
  std::array<std::uint32_t, 624> state_;
  int next_ = 624;
};

}  // namespace mindpipe
