#include <type_traits>

#include "cuda/device/group.h"
#include "cuda/device/norm_kernels.h"

namespace mindpipe::cuda {
namespace {

template <class T>
inline constexpr int pair_lanes = static_cast<int>(8 / sizeof(T));  ///< pairs of a thread
constexpr int heads_at_once = 4;

/// (a, b) -> (a cos - b sin, b cos + a sin): a thread turns a few pairs of one row in every head.
template <class T>
__global__ void rotary_pairs(RotaryCall call, const __grid_constant__ Frequencies frequencies, bool wide) {
  using A = Wide<T>;
  constexpr int size = pair_lanes<T>;
  const int64_t half = call.width / 2;
  for_row_group<size>(call.n, half, wide, [&](int64_t n, int64_t i, auto ending) {
    const double position = static_cast<double>(call.first_position + n - quotient(n, call.rows) * call.rows);
    A cosine[size], sine[size];
#pragma unroll
    for (int k = 0; k < size; ++k) {
      double s = 0, c = 1;
      if (i + k < half) sincos(position * frequencies.of[i + k], &s, &c);
      cosine[k] = static_cast<A>(c);
      sine[k] = call.inverse ? -static_cast<A>(s) : static_cast<A>(s);
    }
    T* low = static_cast<T*>(call.data) + (n * call.heads + call.first) * call.width + i;
    const auto turn_heads = [&](auto how_many) {
      constexpr int heads = decltype(how_many)::value;
      Raw<T, size> lows[heads], highs[heads];
#pragma unroll
      for (int h = 0; h < heads; ++h) {
        lows[h] = fetch<size>(low + h * call.width, ending);
        highs[h] = fetch<size>(low + h * call.width + half, ending);
      }
#pragma unroll
      for (int h = 0; h < heads; ++h) {
        auto a = widened(lows[h]), b = widened(highs[h]);
#pragma unroll
        for (int k = 0; k < size; ++k) {
          const A before = a.x[k];
          a.x[k] = before * cosine[k] - b.x[k] * sine[k];
          b.x[k] = b.x[k] * cosine[k] + before * sine[k];
        }
        store(low + h * call.width, a, ending);
        store(low + h * call.width + half, b, ending);
      }
      low += heads * call.width;
    };
    int64_t left = call.count;
    for (; left >= heads_at_once; left -= heads_at_once)
      turn_heads(std::integral_constant<int, heads_at_once>{});
    for (; left > 0; --left) turn_heads(std::integral_constant<int, 1>{});
  });
}

}  // namespace

void rotary(int type, const RotaryCall& call, const Frequencies& frequencies, cudaStream_t stream) {
  with_number(type, [&]<class T>(T) {
    constexpr int size = pair_lanes<T>;
    const int64_t half = call.width / 2;
    launch(stream, grid_of_row_groups(call.n, half, size), rotary_pairs<T>, call, frequencies,
           aligned(call.data) && half % size == 0);
  });
}

}  // namespace mindpipe::cuda
