#pragma once
#include <memory>
#include <string>
#include <vector>

#include "comm/affinity.h"
#include "energy/gpus.h"
#include "energy/meter.h"
#include "energy/node_reader.h"

namespace mindpipe {

struct DeviceConfig;
struct EnergyConfig;

/// How this rank's GPU is named, where device.kind is cuda. `places`: where all ranks run.
GpuInUse gpu_of_rank(const DeviceConfig& device, const std::vector<RankPlace>& places, int rank);

/// A rank's machine, as all ranks agree on it at the start.
struct JobNode {
  int leader = 0;             ///< the lowest rank there
  std::vector<int> ranks;     ///< ascending
  std::vector<UsedGpu> gpus;  ///< on which these compute, each once
  std::string why_no_gpus;    ///< why some of these GPUs are not known
  bool computes_on_gpus = false;
};
/// The node of this rank. Collective over the world; `gpu`: what this rank computes on.
JobNode node_of_rank(const World& world, const std::vector<RankPlace>& places, const GpuInUse& gpu);

/// Meters of a node, and why others are not among them.
struct OpenedMeters {
  std::vector<std::unique_ptr<Meter>> meters;
  std::string left_out;
};
/// Opens meters as energy.meter says, or refuses; called on the node's leader.
OpenedMeters open_meters(const EnergyConfig& energy, const DeviceConfig& device, const JobNode& node);

/// Reads meters of a node, and finds the job's part where others work there.
std::unique_ptr<NodeReader> reader_of(std::vector<std::unique_ptr<Meter>> meters, const JobNode& node,
                                      const std::vector<RankPlace>& places);

/// Has rank 0 say what power each node allows. Collective over the world.
void say_caps(const World& world, const EnergyConfig& energy, const std::vector<RankPlace>& places,
              const JobNode& node);

}  // namespace mindpipe
