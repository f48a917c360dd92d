#pragma once
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "core/random.h"
#include "plain_backend.h"

namespace mindpipe {

/// Owns the memory of a tensor for a test.
struct Block {
  std::vector<double> memory;
  Tensor tensor;
  Block(const Shape& shape, DType dtype)
      : memory(static_cast<std::size_t>(shape.count()) + 32), tensor{memory.data(), shape, dtype} {}
  Block(const Block&) = delete;
  Block(Block&& other) = default;
};

inline float value_of(const Tensor& t, std::int64_t i) {
  return t.dtype == DType::bf16 ? widened(t.as<std::uint16_t>()[i]) : t.as<float>()[i];
}
inline void set_value(const Tensor& t, std::int64_t i, float x) {
  if (t.dtype == DType::bf16) t.as<std::uint16_t>()[i] = rounded_bf16(x);
  else t.as<float>()[i] = x;
}

/// Element `i` of logical shard `shard`, as the layers would have computed it wherever the shard is.
inline float leaf(int shard, std::int64_t i) {
  const RandomStream stream{7, 11, static_cast<std::uint32_t>(shard), 0};
  return static_cast<float>(stream.normal(static_cast<std::uint64_t>(i)) * (1 + i % 7));
}
inline void fill_leaves(const Tensor& shards, int first_shard, int count) {
  const std::int64_t each = shards.count() / count;
  for (int s = 0; s < count; ++s)
    for (std::int64_t i = 0; i < each; ++i) set_value(shards, s * each + i, leaf(first_shard + s, i));
}

/// The tree's root for element `i` over shards [first, first + count), written down as the definition: the
/// left subtree is the largest power of two below the count; every node is rounded to the dtype.
inline float tree_sum(DType dtype, int first, int count, std::int64_t i) {
  const auto rounded = [&](float x) { return dtype == DType::bf16 ? widened(rounded_bf16(x)) : x; };
  if (count == 1) return rounded(leaf(first, i));
  int left = 1;
  while (2 * left < count) left *= 2;
  return rounded(tree_sum(dtype, first, left, i) + tree_sum(dtype, first + left, count - left, i));
}

}  // namespace mindpipe
