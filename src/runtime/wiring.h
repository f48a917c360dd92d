#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/agreement.h"
#include "comm/channel.h"
#include "comm/device_transports.h"
#include "comm/process_grid.h"
#include "comm/reduction.h"
#include "comm/staging.h"
#include "plan/run_plan.h"
#include "state/groups.h"

namespace mindpipe {

/// Says what carries messages between the ranks' devices.
using MakeTransports = std::function<DeviceTransports(const Config& config, const World& world,
                                                      Backend& backend, Waiting& waiting)>;
DeviceTransports make_transports(const Config& config, const World& world, Backend& backend,
                                 Waiting& waiting);

/// All that connects a rank to the others of its job: its groups along the axes of the grid, its messages,
/// sums and agreements.
class Wiring {
 public:
  /// Collective over the world. `watchdog`, unless none, hears what is waited for and asks the transports for
  /// trouble; it outlives this.
  Wiring(const Config& config, const World& world, const RunPlan& plan, Backend& backend,
         const MakeTransports& connect, Watchdog* watchdog);
  ~Wiring();
  Wiring(const Wiring&) = delete;
  Wiring& operator=(const Wiring&) = delete;

  Communicator& group(Axis axis) { return *groups_[static_cast<std::size_t>(axis)]; }
  Groups groups() { return {group(Axis::tensor), group(Axis::data), group(Axis::pipeline)}; }
  /// Takes the room that exchanges need, as the plan says.
  void reserve(const RankFootprint& footprint);
  /// Exact sum over all ranks of the grid. Collective.
  void sum_over_grid(std::vector<std::int64_t>& values, TrafficClass kind = TrafficClass::scalars);

  /// Memory of the host that messages pass through, where the host may not read the backend's.
  std::optional<Memory> pinned;
  std::optional<Staging> staging;
  Waiting waiting;
  DeviceTransports carrier;
  TrafficLedger ledger;
  std::optional<ProcessGrid> grid;
  Layout layout;
  /// Ports that messages and sums pass where devices are imitated; none elsewhere.
  std::optional<PaperPorts> ports;
  std::unique_ptr<Channels> channels;  ///< channels of the lists; null where there is one stage
  std::unique_ptr<Channels>
      reports;  ///< what stages tell of subnets, in the host's memory; null where one rank trains them
  std::unique_ptr<Reductions> reductions;
  std::unique_ptr<Agreement> agreement;
  std::unique_ptr<Group> all_ranks;  ///< all ranks of the job; null where there is one

 private:
  std::unique_ptr<Group> group_along(Axis axis, Transports::Use use, const char* name);
  std::unique_ptr<Communicator> make_group(Backend& backend, Axis axis, int logical, Transports::Use use);
  void imitate_links(const Network& network);
  void connect_stages(const RunPlan& plan, Route route);

  Watchdog* watchdog_;
  std::array<std::unique_ptr<Communicator>, 4> groups_;  ///< one for each axis
};

}  // namespace mindpipe
