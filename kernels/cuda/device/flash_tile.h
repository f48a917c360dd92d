#pragma once
#include <type_traits>

#include "cuda/device/tile_sums.h"
#include "operations/attention_views.h"

/// What attention kernels share: what a query sees, how a tile gets into shared memory, its dropout mask.
namespace mindpipe::cuda::flash {

inline constexpr float log2_of_e = 1.44269504f;

/// Rows of a tile: what fits into shared memory, and into 99 KiB of it but for f32 heads wider than 128.
template <class T, int width>
inline constexpr int tile_rows = sizeof(T) == 2 && width <= 128 ? 64 : 32;
/// Heads are padded with zeros to one of three widths: visit(std::integral_constant<int, 64 | 128 | 256>).
inline constexpr int widest = 256;
template <class Visit>
void with_padded_width(std::int64_t width, const Visit& visit) {
  if (width <= 64) visit(std::integral_constant<int, 64>{});
  else if (width <= 128) visit(std::integral_constant<int, 128>{});
  else visit(std::integral_constant<int, widest>{});
}

/// Keys of the sample that are not padding.
MINDPIPE_DEVICE int length_of(const AttentionCall& call, int sample) {
  const int keys = static_cast<int>(call.keys);
  if (call.key_lengths == nullptr) return keys;
  const int n = call.key_lengths[sample];
  return n < 0 ? 0 : n < keys ? n : keys;
}
/// Keys that the query sees, of `length` that are there; none behind the last query.
MINDPIPE_DEVICE int visible_to(const AttentionCall& call, int query, int length) {
  if (query >= call.queries) return 0;
  if (!call.causal) return length;
  const int n = query + static_cast<int>(call.keys - call.queries) + 1;
  return n < 0 ? 0 : n < length ? n : length;
}
MINDPIPE_DEVICE int clamp(int x, int low, int high) { return x < low ? low : x > high ? high : x; }
MINDPIPE_DEVICE int key_head_of(const AttentionCall& call, int head) {
  return static_cast<int>(head * call.key_heads / call.query_heads);
}

template <class T>
MINDPIPE_DEVICE T* row_of(const HeadsView& view, const AttentionCall& call, int sample, int row, int head) {
  return static_cast<T*>(view.data) + sample * view.sample + row * view.row + head * call.width;
}
MINDPIPE_DEVICE float* log_sum_of(const AttentionCall& call, int sample, int head, int query) {
  return static_cast<float*>(call.log_sum) + (sample * call.query_heads + head) * call.queries + query;
}

struct alignas(16) Sixteen {
  std::uint32_t word[4];
};
/// Whether rows of this view can be read in sixteens of bytes.
inline bool in_sixteens(const HeadsView& view, std::int64_t width, std::size_t element) {
  const auto whole = [&](std::int64_t n) { return n * static_cast<std::int64_t>(element) % 16 == 0; };
  return reinterpret_cast<std::uintptr_t>(view.data) % 16 == 0 && whole(view.sample) && whole(view.row) &&
         whole(width);
}

/// The first `count` rows of a head into a tile, zeros around them: what lies beyond may be anything.
template <class T, int rows, int cols>
MINDPIPE_DEVICE void load(T (&to)[rows][cols + tile_pad<T>], const T* from, std::int64_t row_stride,
                          int count, int width, bool sixteens) {
  constexpr int step = tile_pad<T>;
  for (int i = thread(); i < rows * cols / step; i += block_threads) {
    const int row = i / (cols / step), col = i % (cols / step) * step;
    T* at = &to[row][col];
    const T* source = from + row * row_stride + col;
    if (sixteens && row < count && col < width) {  // the width is a multiple of `step` then
      *reinterpret_cast<Sixteen*>(at) = *reinterpret_cast<const Sixteen*>(source);
    } else {
      for (int e = 0; e < step; ++e) at[e] = row < count && col + e < width ? source[e] : T{};
    }
  }
}

/// Words 4 block .. 4 block + 3 of the dropout stream of a sample: core/random.h's philox.
MINDPIPE_DEVICE void draw(const AttentionCall& call, std::uint32_t sample, std::uint64_t block,
                          std::uint32_t (&c)[4]) {
  c[0] = static_cast<std::uint32_t>(block);
  c[1] = static_cast<std::uint32_t>(block >> 32);
  c[2] = call.step;
  c[3] = call.sample + sample;
  std::uint32_t k0 = call.key[0], k1 = call.key[1];
  MINDPIPE_UNROLL
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53u} * c[0], b = std::uint64_t{0xCD9E8D57u} * c[2];
    c[0] = static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ k0;
    c[1] = static_cast<std::uint32_t>(b);
    c[2] = static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ k1;
    c[3] = static_cast<std::uint32_t>(a);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
}

/// kept[query][key] of a tile: 1 where the probability is kept. A row's elements follow each other along the
/// keys, four of them to a block of the stream, which need not begin where the tile does.
template <int rows>
MINDPIPE_DEVICE void draw_mask(const AttentionCall& call, int sample, int head, int first_query,
                               int first_key, std::uint8_t (&kept)[rows][rows]) {
  constexpr int blocks = rows / 4 + 1;
  for (int i = thread(); i < rows * blocks; i += block_threads) {
    const int row = i / blocks;
    const auto first = static_cast<std::uint64_t>(
        ((call.head_offset + head) * call.queries + first_query + row) * call.keys + first_key);
    std::uint32_t words[4];
    draw(call, static_cast<std::uint32_t>(sample), first / 4 + static_cast<std::uint64_t>(i % blocks), words);
    const int col = i % blocks * 4 - static_cast<int>(first % 4);
    MINDPIPE_UNROLL
    for (int e = 0; e < 4; ++e)
      if (col + e >= 0 && col + e < rows) kept[row][col + e] = words[e] >= call.threshold;
  }
}

}  // namespace mindpipe::cuda::flash
