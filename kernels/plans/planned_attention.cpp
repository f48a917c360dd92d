#include "plans/planned_attention.h"

#include <fmt/format.h>

namespace mindpipe {
namespace {

constexpr std::int64_t tile = 128;

std::int64_t whole_tiles(std::int64_t rows) { return (rows + tile - 1) / tile * tile; }

PlannedAttention::Strides strides_of(const HeadsView& view) { return {view.sample, view.row}; }

}  // namespace

PlannedAttention::PlannedAttention(const AttentionCall& c, bool is_backward, int groups)
    : backward(is_backward),
      causal(c.causal),
      padded(c.key_lengths != nullptr),
      samples(c.samples),
      query_heads(c.query_heads / groups),
      key_heads(c.key_heads / groups),
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
      dv(strides_of(c.dv)),
      log_sum_sample(c.query_heads * c.queries) {}

std::size_t PlannedAttention::formula_bytes() const {
  if (!backward) return lengths_bytes();
  constexpr std::int64_t bf16 = 2, f32 = 4;
  const std::int64_t heads = samples * query_heads, rows = whole_tiles(queries), columns = whole_tiles(keys),
                     of_probabilities = heads * rows * columns * bf16, of_sums = heads * rows * f32,
                     of_shared_keys = query_heads == key_heads ? 0 : 2 * heads * keys * width * bf16;
  return lengths_bytes() + static_cast<std::size_t>(of_probabilities + of_sums + of_shared_keys);
}

std::string PlannedAttention::text() const {
  const auto many = [](std::int64_t count, const char* name) {
    return fmt::format("{} {}{}", count, name, count == 1 ? "" : "s");
  };
  return fmt::format("{} of {}, {} on {}, {} queries, {} keys, width {}{}{}",
                     backward ? "backward" : "forward", many(samples, "sample"), many(query_heads, "head"),
                     key_heads, queries, keys, width, causal ? ", causal" : "", padded ? ", padded" : "");
}

bool is_planned(const AttentionCall& call, DType dtype) {
  if (dtype != DType::bf16 || call.threshold != 0 || call.width % 8 != 0 || call.width > 128 ||
      call.queries < 2 || call.keys < 2)
    return false;
  if (!call.causal) return call.key_lengths != nullptr || call.keys % tile == 0;
  if (call.queries == call.keys) return true;
  return call.queries < call.keys && call.key_lengths == nullptr;
}

int groups_of(const AttentionCall& call, bool backward, const AttentionRoom& room) {
  for (int groups = 1; groups <= (room.by_groups ? call.key_heads : 1); ++groups)
    if (call.key_heads % groups == 0 && PlannedAttention(call, backward, groups).formula_bytes() <= room.most)
      return groups;
  return 0;
}

}  // namespace mindpipe
