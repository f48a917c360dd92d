#pragma once
#include "cpu/simd/math.h"
#include "cpu/simd/number.h"

/// Walks along a row by whole vectors and one partial vector at its end, the same way for f32, bf16 and f64,
/// so that a kernel is written once. f64 goes one number at a time: it serves gradient checks, not speed.
namespace mindpipe::MINDPIPE_ISA {

/// A vector of one double.
struct Single {
  double v;
};
MINDPIPE_INLINE Single operator+(Single a, Single b) { return {a.v + b.v}; }
MINDPIPE_INLINE Single operator-(Single a, Single b) { return {a.v - b.v}; }
MINDPIPE_INLINE Single operator*(Single a, Single b) { return {a.v * b.v}; }
MINDPIPE_INLINE Single operator/(Single a, Single b) { return {a.v / b.v}; }
MINDPIPE_INLINE Single max(Single a, Single b) { return a.v > b.v ? a : b; }
MINDPIPE_INLINE Single multiply_add(Single a, Single b, Single c) { return {a.v * b.v + c.v}; }
MINDPIPE_INLINE Single negate(Single a) { return {-a.v}; }
MINDPIPE_INLINE Single exp(Single a) { return {__builtin_exp(a.v)}; }
MINDPIPE_INLINE Single exp_below_zero(Single a) { return exp(a); }
MINDPIPE_INLINE Sigmoid<Single> sigmoid(Single u) {
  return {{1 / (1 + __builtin_exp(-u.v))}, {1 / (1 + __builtin_exp(u.v))}};
}
MINDPIPE_INLINE double sum(Single a) { return a.v; }
MINDPIPE_INLINE double largest(Single a) { return a.v; }
MINDPIPE_INLINE Single load(const double* from) { return {*from}; }
MINDPIPE_INLINE void store(double* to, Single a) { *to = a.v; }
MINDPIPE_INLINE Single load(const double* from, int) { return {*from}; }
MINDPIPE_INLINE void store(double* to, Single a, int) { *to = a.v; }

/// The vector in which numbers of type T are computed, and how many it holds.
template <class T>
using Lanes = decltype(load(static_cast<const T*>(nullptr)));
template <class T>
constexpr int lanes_of = sizeof(Lanes<T>) == sizeof(Single) ? 1 : lanes;

/// Vector that has `x` in all lanes.
template <class V>
MINDPIPE_INLINE V all(double x) {
  if constexpr (sizeof(V) == sizeof(Single)) return {x};
  else return broadcast(static_cast<float>(x));
}

/// How much of a vector is there: all of it, or its first lanes.
struct Whole {};
struct Some {
  int count;
};

template <class T>
MINDPIPE_INLINE Lanes<T> read(const T* from, Whole) {
  return load(from);
}
template <class T>
MINDPIPE_INLINE Lanes<T> read(const T* from, Some some) {
  return load(from, some.count);
}
template <class T>
MINDPIPE_INLINE void write(T* to, Lanes<T> a, Whole) {
  store(to, a);
}
template <class T>
MINDPIPE_INLINE void write(T* to, Lanes<T> a, Some some) {
  store(to, a, some.count);
}

/// The lanes that are there, and `otherwise` in the others.
template <class V>
MINDPIPE_INLINE V only(V a, V, Whole) {
  return a;
}
MINDPIPE_INLINE Vector only(Vector a, Vector otherwise, Some some) {
  return select(first_lanes(some.count), a, otherwise);
}
MINDPIPE_INLINE Single only(Single a, Single, Some) { return a; }

/// Calls body(i, Whole or Some) for the vectors of a row of `count` numbers of type T.
template <class T, class Body>
MINDPIPE_INLINE void for_lanes(std::int64_t count, const Body& body) {
  constexpr int width = lanes_of<T>;
  std::int64_t i = 0;
  for (; i + width <= count; i += width) body(i, Whole{});
  if (i < count) body(i, Some{static_cast<int>(count - i)});
}

}  // namespace mindpipe::MINDPIPE_ISA
