#pragma once
#include <string>

#include "config/kinds.h"

namespace mindpipe {

struct RunConfig {
  std::string dir;              ///< the run directory; everything is written below it
  std::string resume = "auto";  ///< auto | never | the directory of a checkpoint
  std::string weights;          ///< file or directory of those to begin with; empty: they are drawn
  bool new_head = false;        ///< the head's are drawn all the same
  double max_walltime = 0;      ///< seconds after which the run stops cleanly with a checkpoint; 0: no limit
  int stop_after = 0;           ///< steps after which it does so; 0: all of them
  int log_every = 0;  ///< steps between plain lines of progress; 0: often at first, then one a minute
  bool operator==(const RunConfig&) const = default;
};

struct CheckpointConfig {
  int every = 0;          ///< steps
  double every_time = 0;  ///< seconds
  int keep = 2, keep_every = 0;
  Background background = Background::automatic;
  CheckpointWriterKind writer = CheckpointWriterKind::direct;
  SaveFailure on_error = SaveFailure::stop;
  /// Whether the run is saved while it goes on, not only where it stops.
  bool is_periodic() const { return every > 0 || every_time > 0; }
  bool operator==(const CheckpointConfig&) const = default;
};

struct WatchdogConfig {
  double start = 300, step = 0;  ///< seconds; step 0: max(10 x median step, 300)
  bool operator==(const WatchdogConfig&) const = default;
};

/// What is done about losses and gradients that are not finite, losses that jump, and copies that differ.
struct GuardConfig {
  int skips = 3;     ///< steps in a row that change nothing, after which the run goes back
  double spike = 0;  ///< median absolute deviations above the median of losses that are too many; 0: any
  int replicas_every = 0;  ///< steps between comparisons of what ranks hold alike, besides saves
  int rollbacks = -1;      ///< how often a run goes back; below 0: twice where checkpoints are periodic
  bool operator==(const GuardConfig&) const = default;
};

struct TraceConfig {
  int steps = 3;  ///< the last steps of a training whose actions go to trace.json; 0: none
  bool operator==(const TraceConfig&) const = default;
};

}  // namespace mindpipe
