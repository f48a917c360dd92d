#include "plans/planned_attention.h"

#include <algorithm>

namespace mindpipe {
namespace {

constexpr std::int64_t tile = 128, largest_plan = std::int64_t{5} << 30;

std::int64_t whole_tiles(std::int64_t rows) { return (rows + tile - 1) / tile * tile; }

PlannedAttention::Strides strides_of(const HeadsView& view) { return {view.sample, view.row}; }

}  // namespace

PlannedAttention::PlannedAttention(const AttentionCall& c, bool is_backward)
    : backward(is_backward),
      causal(c.causal),
      padded(c.key_lengths != nullptr),
      samples(c.samples),
      query_heads(c.query_heads),
      key_heads(c.key_heads),
      queries(c.queries),
      keys(c.keys),
      width(c.width),
      scale(c.scale),
      q(strides_of(c.q)),
      k(strides_of(c.k)),
      v(strides_of(c.v)),
      out(strides_of(c.out)),
      dout(strides_of(c.dout)),
      dq(strides_of(c.dq)),
      dk(strides_of(c.dk)),
      dv(strides_of(c.dv)) {}

std::size_t PlannedAttention::most_bytes() const {
  constexpr std::int64_t anything_else = std::int64_t{1} << 20, softmax_sums = 2 * sizeof(float);
  const std::int64_t heads = samples * query_heads, rows = whole_tiles(queries), columns = whole_tiles(keys);
  std::int64_t bytes = anything_else + heads * rows * softmax_sums;
  if (backward) {
    const std::int64_t of_probabilities = heads * rows * columns * 2, of_queries = heads * rows * width * 4,
                       of_keys = query_heads == key_heads ? 0
                                                          : 2 * heads * columns * width *
                                                                4;  // of all heads, before they are added
    bytes += of_probabilities + of_queries + of_keys;
  }
  return lengths_bytes() + aligned(static_cast<std::size_t>(std::min(bytes, largest_plan)));
}

bool is_planned(const AttentionCall& call, DType dtype) {
  if (dtype != DType::bf16 || call.threshold != 0 || call.width % 8 != 0 || call.width > 128 ||
      call.queries < 2 || call.keys < 2)
    return false;
  if (!call.causal) return call.key_lengths != nullptr || call.keys % tile == 0;
  if (call.queries == call.keys) return true;
  return call.queries < call.keys && call.key_lengths == nullptr;
}

}  // namespace mindpipe
