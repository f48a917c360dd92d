#pragma once
#include <cstdint>

#include "core/bulk_parts.h"
#include "program/clock/task.h"

namespace mindpipe {

/// The messages of a rank of which transfers are made, and between which others pass ports.
struct Calls {
  std::int64_t part_bytes = most_part_bytes;  ///< bytes of a part of a message, or of bulk traffic, at most
  int of_sum = 1, of_gather = 1;              ///< messages of a part of these over data, at most
  int of_move = 1;                            ///< messages of a move whose time a table says, at most
  /// Messages of a transfer of so many bytes, or of a part of one over data.
  int of(TaskKind kind, std::int64_t bytes) const {
    switch (kind) {
      case TaskKind::sum:
        return of_sum;
      case TaskKind::gather:
        return of_gather;
      case TaskKind::message:
        return parts_of(bytes, 0, part_bytes);
      case TaskKind::move:
        return of_move;
      case TaskKind::forward:
      case TaskKind::backward:
      case TaskKind::backward_input:
      case TaskKind::backward_weight:
      case TaskKind::update:
      case TaskKind::exchange:
      case TaskKind::scalars:
      case TaskKind::fetch:
      case TaskKind::evict:
      case TaskKind::stash:
      case TaskKind::unstash:
        break;
    }
    return 1;
  }
  bool operator==(const Calls&) const = default;
};

}  // namespace mindpipe
