#pragma once
#include <cstdint>

#include "operations/either_device.h"

namespace mindpipe {

/// What element number `index` with these bits adds to its tensor's hash, modulo 2^64. Other bits always give
/// another number, so no change of one element is ever missed; the sum needs no order.
MINDPIPE_EITHER_DEVICE inline std::uint64_t element_hash(std::uint64_t index, std::uint64_t bits) {
  std::uint64_t x = bits ^ (index + 1) * 0x9e3779b97f4a7c15u;
  x *= 0xff51afd7ed558ccdu;
  x ^= x >> 32;
  return x * 0xc4ceb9fe1a85ec53u;
}

}  // namespace mindpipe
