#include "core/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>

namespace mindpipe {
namespace {

constexpr std::uint32_t polynomial = 0x82F63B78;  // of CRC32C, lowest bit first

/// Product of two polynomials over GF(2), modulo that of CRC32C; the highest bit is the coefficient of x^0.
std::uint32_t product(std::uint32_t a, std::uint32_t b) {
  std::uint32_t sum = 0;
  for (std::uint32_t bit = std::uint32_t{1} << 31; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) sum ^= b;
    b = (b >> 1) ^ ((b & 1) != 0 ? polynomial : 0);
  }
  return sum;
}

}  // namespace

std::uint32_t crc32c(const void* bytes, std::size_t count, std::uint32_t before) {
  constexpr std::size_t most = std::size_t{1} << 30;  // the library counts in int
  auto* next = static_cast<unsigned char*>(const_cast<void*>(bytes));
  std::uint32_t state = ~before;
  for (std::size_t left = count; left > 0;) {
    const std::size_t now = std::min(left, most);
    state = crc32_iscsi(next, static_cast<int>(now), state);
    next += now;
    left -= now;
  }
  return ~state;
}

std::uint32_t joined_crc32c(std::uint32_t first, std::uint32_t second, std::uint64_t bytes_of_second) {
  // Behind n more bytes, what stood before them counts times x^(8 n).
  std::uint32_t power = std::uint32_t{1} << 23;  // x^8
  for (; bytes_of_second > 0; bytes_of_second >>= 1) {
    if ((bytes_of_second & 1) != 0) first = product(power, first);
    power = product(power, power);
  }
  return first ^ second;
}

}  // namespace mindpipe
