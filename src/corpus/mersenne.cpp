#include "corpus/mersenne.h"

#include <bit>

namespace mindpipe {

Mersenne::Mersenne(std::uint32_t seed) {
  state_[0] = seed;
  for (std::uint32_t i = 1; i < 624; ++i)
    state_[i] = 1812433253u * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
}

void Mersenne::refill() {
  for (int i = 0; i < 624; ++i) {
    const std::uint32_t joined = (state_[i] & 0x80000000u) | (state_[(i + 1) % 624] & 0x7fffffffu);
    state_[i] = state_[(i + 397) % 624] ^ (joined >> 1) ^ ((joined & 1u) ? 0x9908b0dfu : 0u);
  }
  next_ = 0;
}

std::uint32_t Mersenne::word() {
  if (next_ == 624) refill();
  std::uint32_t y = state_[next_++];
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680u;
  y ^= (y << 15) & 0xefc60000u;
  return y ^ (y >> 18);
}

std::uint64_t Mersenne::up_to(std::uint64_t largest) {
  if (largest == 0) return 0;
  const std::uint64_t mask = ~std::uint64_t{0} >> std::countl_zero(largest);
  while (true) {
    std::uint64_t value = word();
    if (largest > 0xffffffffu) value = value << 32 | word();
    value &= mask;
    if (value <= largest) return value;
  }
}

}  // namespace mindpipe
