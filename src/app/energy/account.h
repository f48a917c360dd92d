#pragma once
#include <string>
#include <vector>

#include "comm/grid.h"
#include "energy/node_reader.h"
#include "energy/powers.h"
#include "trace/summary.h"

namespace mindpipe {

/// How far a rank had come at a moment: seconds of work and waiting since the beginning.
struct WorkPoint {
  std::int64_t ns = 0;
  double busy = 0;
};

/// What one rank did, and, on a rank that reads its node's meters, what these said.
struct RankEnergy {
  int leader = 0;  ///< the rank that reads for this one's node
  std::int64_t begin_ns = 0, end_ns = 0;
  TimeSpent spent;      ///< by training
  TimeSpent evaluated;  ///< by forwards alone: evaluations
  std::vector<WorkPoint> work;
  bool metered = false;
  bool shared = false;   ///< others worked on the node
  bool divided = false;  ///< others used its devices: the part is an estimate
  double joules = 0, reader_seconds = 0;
  std::vector<EnergyPoint> energy;
  std::string words;     ///< what the meters are, a line each
  std::string troubles;  ///< what went wrong with them, a line each
  double seconds() const { return static_cast<double>(end_ns - begin_ns) * 1e-9; }
  double busy_seconds() const { return static_cast<double>(spent.work() + evaluated.work()) * 1e-9; }
};

std::vector<std::byte> packed(const RankEnergy& rank);
RankEnergy unpacked(const std::vector<std::byte>& bytes);

/// Joules by what they were for.
struct EnergyPhases {
  double forward = 0, backward = 0, update = 0, scalars = 0, evaluation = 0, waiting = 0, outside = 0;
  double total() const { return forward + backward + update + scalars + evaluation + waiting + outside; }
};

/// Whom the others waited for: a stage, or a rank that is slower than its like.
struct WaitedFor {
  std::string who;  ///< empty: nobody in particular
  double joules = 0;
};

/// Where the energy of a run went.
struct EnergyAccount {
  double joules = 0, seconds = 0;
  bool estimated = false;  ///< all or a part of it
  FittedPowers powers;     ///< watts of a rank
  EnergyPhases phases;
  WaitedFor waited_for;
  double reader_seconds = 0;
  bool shared = false;
  std::vector<std::string> words, troubles;
};

/// Adds up what all ranks bring. `shape`: the grid they form.
EnergyAccount account_of(const std::vector<RankEnergy>& ranks, const Coord& shape, const Powers& estimate);

}  // namespace mindpipe
