#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "layers/unit.h"

namespace mindpipe {

/// Where the flat order of a unit is cut into `shares` for ZeRO: at chunk edges of tensors or between
/// tensors, so that statistics of chunks stay whole. Share i is [share_edge(i), share_edge(i + 1)).
std::int64_t share_edge(const Unit& unit, int shares, int i);
std::vector<std::int64_t> share_edges(const Unit& unit, int shares);

/// A range of one tensor's shard within a unit's flat order.
struct FlatRange {
  int param = 0, shard = 0;
  std::int64_t flat = 0;     ///< where it starts in the flat order
  std::int64_t element = 0;  ///< where it starts in the shard; a multiple of statistics_chunk
  std::int64_t count = 0;
  std::int64_t first_chunk = 0;  ///< first entry among the unit's chunk sums
};

/// A share of a unit's flat order, and the chunks of statistics of the whole unit.
class UnitShare {
 public:
  UnitShare(const Unit& unit, int share, int shares);

  std::int64_t begin() const { return begin_; }  ///< first element, in the unit's flat order
  std::int64_t end() const { return end_; }
  std::int64_t count() const { return end_ - begin_; }
  /// What it has of tensors' shards.
  const std::vector<FlatRange>& ranges() const { return ranges_; }
  std::int64_t chunks() const { return chunks_; }
  /// Which chunk sums, begin and end, added in f64 in order, are the square of a tensor's local shard: none
  /// of a running statistic.
  std::pair<std::int64_t, std::int64_t> chunks_of_shard(int param, int shard) const;

 private:
  const Unit& unit_;
  std::int64_t begin_, end_;
  std::vector<FlatRange> ranges_;
  std::vector<std::int64_t> first_chunks_;  ///< first chunk of each (param, shard), params in order
  std::vector<int> first_shards_;           ///< index of (param, 0) in first_chunks_
  std::int64_t chunks_ = 0;
};

}  // namespace mindpipe
