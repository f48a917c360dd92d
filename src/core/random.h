#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace mindpipe {

/// Philox4x32-10 (Salmon et al., SC 2011): four random words, a pure function of counter and key.
inline std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                           std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53u} * counter[0],
                        b = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

/// The normal deviate below which a share (word + 1/2) / 2^32 of all lie. One word gives one deviate; 95 of
/// 100 need no logarithm: those whose q, the share less a half, has |q| <= normal_center_edge.
float normal_of(std::uint32_t word);

/// A number for a purpose, derived from its name: a parameter's path, "dropout", "subnet".
constexpr std::uint64_t purpose_of(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

/// Random words, a function and no state: (seed, purpose, step, sample) name a stream, an element its word.
struct RandomStream {
  std::uint64_t seed = 0, purpose = 0;
  std::uint32_t step = 0, sample = 0;

  /// The key of Philox: splitmix64 of seed and purpose, so that near ones are far apart.
  std::array<std::uint32_t, 2> key() const {
    std::uint64_t z = seed * 0x9E3779B97F4A7C15u + purpose;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    return {static_cast<std::uint32_t>(z), static_cast<std::uint32_t>(z >> 32)};
  }
  /// Words 4 block .. 4 block + 3 of the stream.
  std::array<std::uint32_t, 4> words(std::uint64_t block) const {
    return philox({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), step, sample},
                  key());
  }
  std::uint32_t word(std::uint64_t element) const { return words(element / 4)[element % 4]; }
  double uniform(std::uint64_t element) const;  ///< a number in (0, 1)
  double normal(std::uint64_t element) const {
    float x;
    normals(element, 1, 1, &x);
    return x;
  }
  /// Normal deviates of elements [first, first + count), one word each; kernels/normals.h has a fast
  /// version.
  void normals(std::uint64_t first, std::uint64_t count, float deviation, float* out) const;
};

}  // namespace mindpipe
