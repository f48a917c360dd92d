#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace mindpipe {

/// SHA-256 (FIPS 180-4) of bytes that come piece by piece.
class Sha256 {
 public:
  using Digest = std::array<std::uint8_t, 32>;

  void add(const void* data, std::size_t bytes);
  /// The digest of everything added so far; nothing may be added afterwards.
  Digest end();

 private:
  void mix(const std::uint8_t* block);

  static constexpr std::size_t block_bytes = 64;
  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::uint8_t, block_bytes> block_{};
  std::uint64_t bytes_ = 0;
};

/// The digest as 64 lower-case hexadecimal digits.
std::string to_string(const Sha256::Digest& digest);

}  // namespace mindpipe
