#include "cpu/simd/update_kernels.h"

#include "cpu/simd/rows.h"
#include "operations/decision.h"
#include "operations/element_hash.h"

namespace mindpipe::MINDPIPE_ISA {
namespace {

using std::int64_t;

/// sums[c] = sum x^2 over chunk c
template <class T>
void sum_squares(const void* x, int64_t count, int64_t chunk, double* sums, int64_t first, int64_t last) {
  using V = Lanes<T>;
  for (int64_t c = first; c < last; ++c) {
    const T* from = static_cast<const T*>(x) + c * chunk;
    const int64_t here = count - c * chunk < chunk ? count - c * chunk : chunk;
    V total = all<V>(0);
    for_lanes<T>(here, [&](int64_t i, auto ending) {
      const V a = read(from + i, ending);
      total = multiply_add(a, a, total);
    });
    sums[c] = sum(total);
  }
}

/// An exponent of all ones.
inline bool not_finite(double x) {
  return (__builtin_bit_cast(std::uint64_t, x) & 0x7ff0000000000000u) == 0x7ff0000000000000u;
}
inline bool not_finite(float x) {
  return (__builtin_bit_cast(std::uint32_t, x) & 0x7f800000u) == 0x7f800000u;
}
inline bool not_finite(bf16 x) { return (x & 0x7f80u) == 0x7f80u; }

template <class T>
int64_t count_not_finite(const void* x, int64_t first, int64_t last) {
  constexpr int64_t block = 4096;
  const T* p = static_cast<const T*>(x);
  int64_t found = 0;
  for (int64_t begin = first; begin < last; begin += block) {
    const int64_t end = last - begin < block ? last : begin + block;
    std::uint32_t here = 0;
    for (int64_t i = begin; i < end; ++i) here += not_finite(p[i]) ? 1u : 0u;
    found += here;
  }
  return found;
}

inline std::uint64_t word_of(double x) { return __builtin_bit_cast(std::uint64_t, x); }
inline std::uint64_t word_of(float x) { return __builtin_bit_cast(std::uint32_t, x); }
inline std::uint64_t word_of(bf16 x) { return std::uint64_t{x} << 16; }

template <class T>
std::uint64_t hash(const void* x, int64_t first, int64_t last) {
  const T* p = static_cast<const T*>(x);
  std::uint64_t sum = 0;
  for (int64_t i = first; i < last; ++i) sum += element_hash(static_cast<std::uint64_t>(i), word_of(p[i]));
  return sum;
}

/// p *= 1 - rate decay; m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2; p -= rate / (1 - b1^t) m / (sqrt(v) /
/// sqrt(1 - b2^t) + epsilon)
template <class T, bool with_value>
void adamw_pass(const AdamWStep& step, const double* decision, const Wide<T>* gradient, Wide<T>* master,
                Wide<T>* m, Wide<T>* v, T* value, int64_t first, int64_t last) {
  using A = Wide<T>;
  const A factor = static_cast<A>(decision[Decision::gradient_factor]), keep = static_cast<A>(step.keep),
          beta1 = static_cast<A>(step.beta1), beta2 = static_cast<A>(step.beta2),
          one_less_beta1 = static_cast<A>(step.one_less_beta1),
          one_less_beta2 = static_cast<A>(step.one_less_beta2),
          step_size = static_cast<A>(step.rate / decision[Decision::first_correction]),
          deviation_factor = static_cast<A>(decision[Decision::second_correction]),
          epsilon = static_cast<A>(step.epsilon);
#pragma GCC ivdep
  for (int64_t i = first; i < last; ++i) {
    const A g = gradient[i] * factor;
    const A first_moment = beta1 * m[i] + one_less_beta1 * g;
    const A second_moment = beta2 * v[i] + one_less_beta2 * g * g;
    const A p = master[i] * keep -
                step_size * (first_moment / (square_root(second_moment) * deviation_factor + epsilon));
    m[i] = first_moment;
    v[i] = second_moment;
    master[i] = p;
    if constexpr (with_value) put(value[i], p);
  }
}

template <class T>
void adamw(const AdamWStep& step, const double* decision, const void* gradient, void* master, void* m,
           void* v, void* value, int64_t first, int64_t last) {
  using A = Wide<T>;
  const auto pass = value != nullptr ? adamw_pass<T, true> : adamw_pass<T, false>;
  pass(step, decision, static_cast<const A*>(gradient), static_cast<A*>(master), static_cast<A*>(m),
       static_cast<A*>(v), static_cast<T*>(value), first, last);
}

/// g += decay p; v = momentum v + g; p -= rate v, or with nesterov: p -= rate (g + momentum v)
template <class T, bool with_velocity, bool with_value>
void sgd_pass(const SgdStep& step, const double* decision, const Wide<T>* gradient, Wide<T>* master,
              Wide<T>* velocity, T* value, int64_t first, int64_t last) {
  using A = Wide<T>;
  const A factor = static_cast<A>(decision[Decision::gradient_factor]), rate = static_cast<A>(step.rate),
          momentum = static_cast<A>(step.momentum), decay = static_cast<A>(step.decay);
  const A of_gradient = step.nesterov ? A(1) : A(0), of_velocity = step.nesterov ? momentum : A(1);
#pragma GCC ivdep
  for (int64_t i = first; i < last; ++i) {
    const A g = gradient[i] * factor + decay * master[i];
    A change = g;
    if constexpr (with_velocity) {
      const A moved = momentum * velocity[i] + g;
      velocity[i] = moved;
      change = of_gradient * g + of_velocity * moved;
    }
    const A p = master[i] - rate * change;
    master[i] = p;
    if constexpr (with_value) put(value[i], p);
  }
}

template <class T>
void sgd(const SgdStep& step, const double* decision, const void* gradient, void* master, void* velocity,
         void* value, int64_t first, int64_t last) {
  using A = Wide<T>;
  const auto with = value != nullptr ? sgd_pass<T, true, true> : sgd_pass<T, true, false>;
  const auto without = value != nullptr ? sgd_pass<T, false, true> : sgd_pass<T, false, false>;
  const auto pass = velocity != nullptr ? with : without;
  pass(step, decision, static_cast<const A*>(gradient), static_cast<A*>(master), static_cast<A*>(velocity),
       static_cast<T*>(value), first, last);
}

}  // namespace

const UpdateKernels update_kernels = {
    {sum_squares<double>, sum_squares<float>, sum_squares<bf16>},
    {count_not_finite<double>, count_not_finite<float>, count_not_finite<bf16>},
    {hash<double>, hash<float>, hash<bf16>},
    {adamw<double>, adamw<float>, adamw<bf16>},
    {sgd<double>, sgd<float>, sgd<bf16>},
};

}  // namespace mindpipe::MINDPIPE_ISA
