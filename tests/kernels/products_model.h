#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/random.h"
#include "cpu/products.h"

/// The definition of a product, element by element, against which the engines are compared bit for bit.
namespace mindpipe::testing_products {

inline float from_bf16(std::uint16_t half) {
  const std::uint32_t bits = static_cast<std::uint32_t>(half) << 16;
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}
inline std::uint16_t to_bf16(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, 4);
  if (std::isnan(x)) return static_cast<std::uint16_t>(bits >> 16 | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/// A matrix of f32 or bf16 with random values, and a guard behind its end that must stay.
struct Values {
  std::int64_t rows, cols;
  bool bf16;
  std::vector<std::uint16_t> half;
  std::vector<float> full;

  Values(std::int64_t r, std::int64_t c, bool is_bf16, std::uint64_t seed) : rows(r), cols(c), bf16(is_bf16) {
    const RandomStream stream{seed, purpose_of("products"), 0, 0};
    const std::int64_t count = rows * cols;
    (bf16 ? half.resize(count + 32, 0x1234) : full.resize(count + 32, 77.0f));
    for (std::int64_t i = 0; i < count; ++i) set(i, static_cast<float>(stream.uniform(i) * 4 - 2));
  }
  void set(std::int64_t i, float x) { bf16 ? void(half[i] = to_bf16(x)) : void(full[i] = x); }
  float at(std::int64_t i) const { return bf16 ? from_bf16(half[i]) : full[i]; }
  float at(std::int64_t r, std::int64_t c) const { return at(r * cols + c); }
  void* data() { return bf16 ? static_cast<void*>(half.data()) : static_cast<void*>(full.data()); }
  bool guard_stands() const {
    for (int i = 0; i < 32; ++i)
      if (bf16 ? half[rows * cols + i] != 0x1234 : full[rows * cols + i] != 77.0f) return false;
    return true;
  }
  MatrixView view() { return {data(), bf16}; }
};

/// The sum of a product's element: a(p) and b(p) give its factors. `fused` is false on the baseline.
template <class A, class B>
float chain(std::int64_t depth, bool fused, float old, bool accumulate, const A& a, const B& b) {
  float total = old;
  for (std::int64_t first = 0; first < depth || first == 0; first += depth_block) {
    float sum = 0;
    for (std::int64_t p = first; p < depth && p < first + depth_block; ++p) sum = fused ? std::fma(a(p), b(p), sum) : sum + a(p) * b(p);
    total = first == 0 && !accumulate ? sum : total + sum;
  }
  return total;
}

}  // namespace mindpipe::testing_products
