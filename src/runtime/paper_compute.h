#pragma once
#include <functional>

#include "runtime/carriers.h"
#include "runtime/script.h"

namespace mindpipe {

/// When an action of the compute queue ran, how much of that it waited for other ranks, and when it was
/// ready: an imitated sum of scalars starts when all of its ranks are.
struct ComputeTimes {
  std::int64_t start = 0, end = 0, inside = 0, posted = 0;
};

/// The compute queue of a device on paper: what has been called lasts as long as it takes there, whatever its
/// operations are, and the sums inside passes go through ports.
class PaperCompute {
 public:
  /// `imitates`: whether nothing of the device is there but time. `move_others` moves the other queues.
  PaperCompute(const Wires& wires, bool imitates, std::function<void()> move_others)
      : waiting_(wires.waiting),
        ports_(wires.ports),
        network_(wires.network),
        imitates_(imitates),
        move_others_(std::move(move_others)) {}

  /// How long an action computes, without its tensor sums.
  std::int64_t computes(const Script& script, int index) const {
    return script.pacer.time_of(index) - sums_of(script, index);
  }
  /// Lets an action that was `called` last as long as on paper, and `longer`. On an imitated device it begins
  /// when what it comes after has ended there, so that a host that is late makes up for it.
  ComputeTimes last(Script& script, int index, const ComputeTimes& called, std::int64_t longer);

 private:
  std::int64_t sums_of(const Script& script, int index) const;
  Load load_of(const Script& script, int index) const;
  std::int64_t passes_ports(Level level, std::int64_t takes, std::int64_t offered);

  Waiting& waiting_;
  PaperPorts* ports_;
  const Network* network_;
  bool imitates_;
  std::function<void()> move_others_;
  std::int64_t free_ns_ = 0;  ///< when the last action ended
};

}  // namespace mindpipe
