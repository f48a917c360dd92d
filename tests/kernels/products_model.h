#pragma once
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <new>
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

/// Blocks that end where a page begins that nobody may touch: who reads or writes beyond them ends there.
template <class T>
struct Fenced {
  using value_type = T;
  Fenced() = default;
  template <class U>
  Fenced(const Fenced<U>&) {}
  static constexpr std::size_t page = 4096;
  static std::size_t pages(std::size_t count) { return (count * sizeof(T) + page - 1) / page * page; }
  T* allocate(std::size_t count) {
    void* block =
        mmap(nullptr, pages(count) + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) throw std::bad_alloc();
    char* fence = static_cast<char*>(block) + pages(count);
    mprotect(fence, page, PROT_NONE);
    return reinterpret_cast<T*>(fence) - count;
  }
  void deallocate(T* block, std::size_t count) {
    munmap(reinterpret_cast<char*>(block + count) - pages(count), pages(count) + page);
  }
  bool operator==(const Fenced&) const { return true; }
};
template <class T>
using FencedVector = std::vector<T, Fenced<T>>;

/// A matrix of f32 or bf16 with random values.
struct Values {
  std::int64_t rows, cols;
  bool bf16;
  FencedVector<std::uint16_t> half;
  FencedVector<float> full;

  Values(std::int64_t r, std::int64_t c, bool is_bf16, std::uint64_t seed) : rows(r), cols(c), bf16(is_bf16) {
    const RandomStream stream{seed, purpose_of("products"), 0, 0};
    const std::int64_t count = rows * cols;
    (bf16 ? half.resize(count) : full.resize(count));
    for (std::int64_t i = 0; i < count; ++i) set(i, static_cast<float>(stream.uniform(i) * 4 - 2));
  }
  void set(std::int64_t i, float x) { bf16 ? void(half[i] = to_bf16(x)) : void(full[i] = x); }
  float at(std::int64_t i) const { return bf16 ? from_bf16(half[i]) : full[i]; }
  float at(std::int64_t r, std::int64_t c) const { return at(r * cols + c); }
  void* data() { return bf16 ? static_cast<void*>(half.data()) : static_cast<void*>(full.data()); }
  MatrixView view() { return {data(), bf16}; }
};

/// How an engine adds up.
enum class Rule { separate, fused, pairs, tiles };

inline float flushed(float x) { return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; }

/// The sum of a product's element: a(p) and b(p) give its factors.
template <class A, class B>
float chain(std::int64_t depth, Rule rule, float old, bool accumulate, const A& a, const B& b) {
  float total = accumulate ? old : 0;
  if (rule == Rule::tiles) {
    for (std::int64_t first = 0; first < depth; first += 32) {
      float part[2] = {0, 0};
      for (std::int64_t p = first; p < depth && p < first + 32; ++p)
        part[p % 2] = flushed(std::fma(flushed(a(p)), flushed(b(p)), part[p % 2]));
      total = flushed(flushed(total) + flushed(part[0] + part[1]));
    }
    return total;
  }
  const std::int64_t block = rule == Rule::pairs ? 2 * depth_block : depth_block;
  for (std::int64_t first = 0; first < depth || first == 0; first += block) {
    float sum = 0;
    for (std::int64_t p = first; p < depth && p < first + block; ++p) {
      if (rule == Rule::pairs) {  // 1, 0, 3, 2, ...
        const std::int64_t q = p % 2 == 1 ? p - 1 : p + 1 < depth ? p + 1 : p;
        sum = flushed(std::fma(flushed(a(q)), flushed(b(q)), flushed(sum)));
      } else {
        sum = rule == Rule::fused ? std::fma(a(p), b(p), sum) : sum + a(p) * b(p);
      }
    }
    total = first == 0 && !accumulate ? sum : total + sum;
  }
  return total;
}

inline std::uint32_t bits(float x) {
  std::uint32_t r;
  std::memcpy(&r, &x, 4);
  return r;
}

inline void run(const ProductKernels& kernels, const Product& product, int threads) {
  const std::size_t bytes = product_workspace(kernels, product.rows, product.cols, product.depth, threads),
                    beyond = 4096;
  std::vector<char> memory(bytes + 64 + beyond, 0x7f);  // garbage that would show
  void* start = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64);
  run_product(kernels, product, threads, start);
  const char* end = static_cast<const char*>(start) + bytes;
  EXPECT_TRUE(std::all_of(end, end + beyond - 64, [](char c) { return c == 0x7f; }))
      << "wrote beyond its workspace";
}

enum class Form { forward, backward_input, backward_weight };

/// One of the three products with random factors: rows, cols, depth of the result.
struct Case {
  Form form;
  Values a, b, bias, before, c;
  Product product;

  Case(Form f, std::int64_t rows, std::int64_t cols, std::int64_t depth, bool bf16, bool bf16_out,
       Activation activation = Activation::none)
      : form(f),
        a(f == Form::backward_weight ? depth : rows, f == Form::backward_weight ? rows : depth, bf16, 1),
        b(f == Form::forward ? cols : depth, f == Form::forward ? depth : cols, bf16, 2),
        bias(1, cols, bf16, 3),
        before(rows, cols, bf16_out, 4),
        c(rows, cols, bf16_out, 5) {
    product.a = {a.data(), a.cols, form == Form::backward_weight, bf16};
    product.b = {b.data(), b.cols, form != Form::forward, bf16};
    product.rows = rows;
    product.cols = cols;
    product.depth = depth;
    product.c = c.view();
    product.activation = activation;
    product.backward = form != Form::forward;
    product.accumulate = form == Form::backward_weight;
    if (form == Form::forward) product.bias = bias.view();
    if (form != Form::backward_weight && activation != Activation::none) product.before = before.view();
  }
  float a_at(std::int64_t i, std::int64_t p) const {
    return form == Form::backward_weight ? a.at(p, i) : a.at(i, p);
  }
  float b_at(std::int64_t j, std::int64_t p) const { return form == Form::forward ? b.at(j, p) : b.at(p, j); }
  float sum(std::int64_t i, std::int64_t j, Rule rule, float old) const {
    return chain(
        product.depth, rule, old, product.accumulate, [&](std::int64_t p) { return a_at(i, p); },
        [&](std::int64_t p) { return b_at(j, p); });
  }
};

/// How many of a product's elements, in every `row_step`th row, differ from their definition: the sum, bias
/// and one rounding, no activation. No-numbers count as equal: which one is handed on is nobody's promise.
inline int wrong_elements(const Case& given, const Values& old, Rule rule, std::int64_t row_step = 1) {
  int wrong = 0;
  for (std::int64_t i = 0; i < given.product.rows; i += row_step)
    for (std::int64_t j = 0; j < given.product.cols; ++j) {
      float want = given.sum(i, j, rule, old.at(i, j));
      if (given.product.bias.data) want += given.bias.at(j);
      if (given.c.bf16) want = from_bf16(to_bf16(want));
      const float is = given.c.at(i, j);
      wrong += std::isnan(want) ? !std::isnan(is) : bits(want) != bits(is);
    }
  return wrong;
}

}  // namespace mindpipe::testing_products
