#pragma once
#include <memory>
#include <optional>

#include "app/energy/energy_text.h"
#include "app/energy/node_meters.h"
#include "app/run/json_line.h"
#include "app/run/run_directory.h"
#include "comm/affinity.h"
#include "runtime/worker.h"

namespace mindpipe {

/// The energy of a training. The lowest rank of each node reads its meters; every rank notes what it does.
class RunEnergy {
 public:
  /// Opens meters as energy.meter says, which is not `none`, or refuses. `places`: where all ranks run.
  /// `node`: this rank's. `directory`: of the rank that writes, else none. `begun`: steps or subnets of
  /// earlier starts that this one goes on from.
  RunEnergy(Worker& worker, const std::vector<RankPlace>& places, const JobNode& node,
            RunDirectory* directory, std::int64_t begun);

  /// Nothing is refused any more: energy.json says that one more start has begun.
  void begin();
  /// A step, subnet or evaluation has ended here, as on all ranks.
  void look();
  /// Adds the joules of a step to the line of the newest one, where a second or more has been measured since
  /// the line before that has them. Only where all ranks are on rank 0's node.
  void add_to(JsonLine& line, std::int64_t done);
  /// Collective: rank 0 prints four lines and what could be saved, and writes energy.json. `trained`: steps
  /// or subnets of this start.
  void report(std::int64_t trained);

 private:
  bool reads() const { return leader_ == worker_.world().rank; }
  void open_meters(const std::vector<RankPlace>& places, const JobNode& node);
  RankEnergy mine();

  Worker& worker_;
  RunDirectory* directory_;
  int leader_ = 0, ranks_here_ = 0;
  std::int64_t begun_ = 0;
  std::string said_before_;  ///< energy.json, as it was
  RunSoFar earlier_;
  std::int64_t begin_ns_ = now_ns(), window_ns_ = begin_ns_;
  Curve<WorkPoint> work_;
  std::unique_ptr<NodeReader> reader_;
  std::string words_;
  EnergyPoint told_;
  std::int64_t told_at_ns_ = 0, told_done_ = -1;
};

/// Makes what a training with these settings wants, nothing where energy.meter is none, and says what power
/// is allowed where energy.cap asks for it. Collective.
std::unique_ptr<RunEnergy> make_run_energy(Worker& worker, const std::vector<RankPlace>& places,
                                           RunDirectory* directory, std::int64_t begun);

}  // namespace mindpipe
