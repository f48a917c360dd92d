#pragma once
#include "cpu/simd/products_words.h"

/// Attention's factors consist of words, as those of products do. A class of words also says how
/// probabilities and gradients of scores, sixteen queries of a key at a time, become factors: they are
/// rounded to the operands' type once.
namespace mindpipe::MINDPIPE_ISA::tile {

constexpr int queries = 96, keys = 96;  ///< tile extents: multiples of 32 and of the register block's rows

inline Vector rounded_as(float, Vector x) { return x; }
inline Vector rounded_as(std::uint16_t, Vector x) { return rounded_to_bf16(x); }

/// Numbers in f32, of whatever type the operands are.
template <class T>
struct Singles : products::Singles<T> {
  using Unit = products::MultiplyAdd;
  /// Factors of products over keys and of those over queries lie alike: [keys][queries].
  static MINDPIPE_INLINE void put_down(const Vector (&x)[1], float* to, int key, int query) {
    put_along(x[0], to, key, query);
  }
  static MINDPIPE_INLINE void put_along(Vector x, float* to, int key, int query) {
    store(to + key * queries + query, rounded_as(T(), x));
  }
};

/// Pairs of bf16 for a unit that multiplies such.
template <class PairUnit>
struct Pairs : products::PairWords {
  using Unit = PairUnit;
  /// Factors of products over keys: [pairs of keys][queries].
  static MINDPIPE_INLINE void put_down(const Vector (&x)[2], float* to, int key, int query) {
    store(to + key / 2 * queries + query, Unit::pair(x[0], x[1]));
  }
  /// Factors of products over queries: [keys][pairs of queries].
  static MINDPIPE_INLINE void put_along(Vector x, float* to, int key, int query) {
    Unit::store_halves(reinterpret_cast<std::uint16_t*>(to) + key * queries + query, x);
  }
};

/// Words that hold `count` numbers.
template <class Words>
constexpr int words_of(int count) {
  return (count + Words::depths - 1) / Words::depths;
}

}  // namespace mindpipe::MINDPIPE_ISA::tile
