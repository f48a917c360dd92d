#include "optim/unit_share.h"

#include <algorithm>

#include "backend.h"

namespace mindpipe {
namespace {

/// A tensor's shard within a unit.
struct ShardPlace {
  int param = 0, shard = 0;
};

/// The first edge at or behind `flat` of a chunk: of statistics_chunk elements, from each tensor's shard on.
/// `from`: the shard to look from on, which becomes the edge's; edges that ascend are found in one walk.
std::int64_t edge_from(const Unit& unit, std::int64_t flat, ShardPlace& from) {
  for (; from.param < static_cast<int>(unit.params().size()); ++from.param, from.shard = 0) {
    const std::int64_t count = unit.shard_shape(from.param).count();
    for (; from.shard < unit.local_shards(from.param); ++from.shard) {
      const std::int64_t first = unit.flat_offset(from.param, from.shard),
                         edge = statistics_chunks(std::max<std::int64_t>(0, flat - first)) * statistics_chunk;
      if (edge < count) return first + edge;
    }
  }
  return unit.flat_count();
}

std::int64_t share_edge(const Unit& unit, int shares, int i, ShardPlace& from) {
  const std::int64_t count = unit.flat_count();
  if (i == 0 || i == shares) return i == 0 ? 0 : count;
  return edge_from(unit, count / shares * i + count % shares * i / shares, from);  // count * i: too large
}

}  // namespace

std::int64_t share_edge(const Unit& unit, int shares, int i) {
  ShardPlace from;
  return share_edge(unit, shares, i, from);
}

std::vector<std::int64_t> share_edges(const Unit& unit, int shares) {
  std::vector<std::int64_t> cuts;
  ShardPlace from;
  for (int i = 0; i <= shares; ++i) cuts.push_back(share_edge(unit, shares, i, from));
  return cuts;
}

UnitShare::UnitShare(const Unit& unit, int share, int shares)
    : unit_(unit), begin_(share_edge(unit, shares, share)), end_(share_edge(unit, shares, share + 1)) {
  for (int p = 0; p < static_cast<int>(unit.params().size()); ++p) {
    first_shards_.push_back(static_cast<int>(first_chunks_.size()));
    const std::int64_t count = unit.shard_shape(p).count();
    for (int s = 0; s < unit.local_shards(p); ++s) {
      first_chunks_.push_back(chunks_);
      const std::int64_t flat = unit.flat_offset(p, s);
      const std::int64_t begin = std::clamp<std::int64_t>(begin_ - flat, 0, count),
                         end = std::clamp<std::int64_t>(end_ - flat, 0, count);
      if (begin < end)
        ranges_.push_back({p, s, flat + begin, begin, end - begin, chunks_ + begin / statistics_chunk});
      chunks_ += statistics_chunks(count);
    }
  }
}

std::pair<std::int64_t, std::int64_t> UnitShare::chunks_of_shard(int param, int shard) const {
  const std::int64_t first = first_chunks_[first_shards_[param] + shard];
  if (!unit_.params()[param].is_learned()) return {first, first};
  return {first, first + statistics_chunks(unit_.shard_shape(param).count())};
}

}  // namespace mindpipe
