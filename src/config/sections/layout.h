#pragma once
#include <cstdint>
#include <vector>

#include "config/groups.h"
#include "config/kinds.h"

namespace mindpipe {

struct GridConfig {  ///< degrees; 0: auto, the rest of the ranks, or, where several are, the fastest on paper
  int supernet = 1, pipeline = 1, data = 1, tensor = 1;
  bool operator==(const GridConfig&) const = default;
};

struct ScheduleConfig {
  ScheduleKind kind = ScheduleKind::one_forward_one_backward;
  int chunks = 1;           ///< chunks of the model per stage
  std::vector<int> cuts;    ///< first block of each stage but the first; empty: balanced
  MicroBatchGroups groups;  ///< groups of an elastic schedule; empty: auto
  double memory = 0;        ///< tapes where weight gradients are put off, of 1f1b's; 0: the schedule's own
  bool operator==(const ScheduleConfig&) const = default;
};

struct ReproducibleConfig {  ///< logical shards; 0: the grid's degree
  int tensor = 0, data = 0;
  bool tensor_follows = false, data_follows = false;  ///< the grid: another one, another number
  bool operator==(const ReproducibleConfig& other) const {
    return tensor == other.tensor && data == other.data;
  }
};

struct MemoryConfig {
  std::int64_t device_limit = 0, host_limit = 0;  ///< bytes of a rank; 0: no limit
  StatePlace optimizer = StatePlace::device;      ///< where masters and moments are kept
  bool operator==(const MemoryConfig&) const = default;
};

/// A cut that a run comes to while it trains.
struct CutAt {
  int step = 0;           ///< in this step, counted from 1, blocks move
  std::vector<int> cuts;  ///< first block of each stage but the first, behind it
  bool operator==(const CutAt&) const = default;
};

/// When blocks change their stage while a run trains.
struct RepartitionConfig {
  std::vector<CutAt> at;
  int every = 0;  ///< steps between reports by which stages are balanced; 0: only `at` moves blocks
  int room = 1;   ///< blocks that a boundary moves in a step, at most
  /// Whether blocks may change their stage.
  bool moves() const { return !at.empty() || every > 0; }
  bool operator==(const RepartitionConfig&) const = default;
};

}  // namespace mindpipe
