#include "app/energy/node_meters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "comm/device_transports.h"
#include "comm/gather_bytes.h"
#include "config/sections/device.h"
#include "config/sections/energy.h"
#include "core/check.h"
#include "core/log.h"
#include "core/text.h"
#include "energy/nvml.h"
#include "energy/powercap.h"

namespace mindpipe {
namespace {

std::vector<int> ranks_beside(const std::vector<RankPlace>& places, int rank) {
  std::vector<int> ranks;
  for (int other = 0; other < static_cast<int>(places.size()); ++other)
    if (std::strcmp(places[other].host, places[rank].host) == 0) ranks.push_back(other);
  return ranks;
}

/// What a rank tells the others: nothing, "=" and an id, or "?" and why there is none.
std::string told_of(const GpuInUse& gpu) {
  if (gpu.number < 0) return "";
  const NamedGpu named = named_gpu(NvmlLibrary::usual, gpu);
  return named.uuid.empty() ? "?" + named.why : "=" + named.uuid;
}

}  // namespace

GpuInUse gpu_of_rank(const DeviceConfig& device, const std::vector<RankPlace>& places, int rank) {
  GpuInUse gpu;
  if (device.kind != DeviceKind::cuda) return gpu;
  const std::vector<int> here = ranks_beside(places, rank);
  gpu.number = static_cast<int>(std::find(here.begin(), here.end(), rank) - here.begin());
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) gpu.visible = visible;
  gpu.bus_place = bus_place_of_gpu();
  return gpu;
}

JobNode node_of_rank(const World& world, const std::vector<RankPlace>& places, const GpuInUse& gpu) {
  JobNode node;
  node.ranks = ranks_beside(places, world.rank);
  node.leader = node.ranks.front();
  const std::vector<std::string> told = exchange_texts(world, told_of(gpu));
  for (const int rank : node.ranks) {
    const std::string& text = told[static_cast<std::size_t>(rank)];
    if (text.empty()) continue;
    node.computes_on_gpus = true;
    const std::string words = text.substr(1);
    if (text[0] == '?') {
      if (node.why_no_gpus.empty()) node.why_no_gpus = fmt::format("the GPU of rank {}: {}", rank, words);
      continue;
    }
    const auto same = std::find_if(node.gpus.begin(), node.gpus.end(),
                                   [&](const UsedGpu& other) { return other.uuid == words; });
    if (same != node.gpus.end()) ++same->ranks;
    else node.gpus.push_back({words, 1, rank});
  }
  return node;
}

OpenedMeters open_meters(const EnergyConfig& energy, const DeviceConfig& device, const JobNode& node) {
  const EnergyMeter wanted = energy.meter;
  const bool automatic = wanted == EnergyMeter::automatic;
  OpenedMeters opened;
  if (wanted == EnergyMeter::none || wanted == EnergyMeter::estimate ||
      (automatic && !row_of(device.kind).computes))
    return opened;
  const auto take = [&](std::unique_ptr<Meter> meter, const std::string& why) {
    MP_REQUIRE(meter || automatic, Exit::bad_configuration,
               "energy.meter is {}: {} (energy.meter=estimate goes by busy and waiting time)", wanted, why);
    if (meter) opened.meters.push_back(std::move(meter));
    else opened.left_out += (opened.left_out.empty() ? "" : "; ") + why;
  };
  std::string why;
  if (wanted == EnergyMeter::nvml || (automatic && node.computes_on_gpus)) {
    std::unique_ptr<Meter> gpus;
    if (!node.computes_on_gpus)
      why = fmt::format("device.kind is {}, so no rank of this node computes on a GPU", device.kind);
    else if (!node.why_no_gpus.empty()) why = node.why_no_gpus;
    else gpus = Nvml::open(NvmlLibrary::usual, node.gpus, why);
    take(std::move(gpus), why);
    if (automatic && opened.meters.empty()) return opened;  // processors alone are a small part of it
  }
  if (wanted == EnergyMeter::rapl || automatic) {
    auto processors = Powercap::open(energy.powercap, why);
    take(std::move(processors), why);
  }
  return opened;
}

std::unique_ptr<NodeReader> reader_of(std::vector<std::unique_ptr<Meter>> meters, const JobNode& node,
                                      const std::vector<RankPlace>& places) {
  NodeReader::Sharing sharing;
  for (const int rank : node.ranks) {
    sharing.processes.push_back(places[rank].process);
    CPU_OR(&sharing.processors, &sharing.processors, &places[rank].processors);
  }
  sharing.node_processors = places[node.leader].processors_there;
  sharing.idle_watts = estimated_powers("core", sharing.node_processors).idle;
  return std::make_unique<NodeReader>(std::move(meters), std::move(sharing));
}

void say_caps(const World& world, const EnergyConfig& energy, const std::vector<RankPlace>& places,
              const JobNode& node) {
  std::string mine;
  if (world.rank == node.leader) {
    std::vector<std::string> caps = powercap_caps(energy.powercap);
    if (node.computes_on_gpus) {
      const std::vector<std::string> gpus = gpu_caps(NvmlLibrary::usual, node.gpus);
      caps.insert(caps.end(), gpus.begin(), gpus.end());
      if (!node.why_no_gpus.empty()) caps.push_back("GPUs: not known: " + node.why_no_gpus);
    }
    mine = join(caps, "; ");
  }
  const std::vector<std::string> told = gather_texts(world, mine);
  std::vector<std::string> distinct, hosts;
  std::vector<int> more;
  for (std::size_t rank = 0; rank < told.size(); ++rank) {
    if (told[rank].empty()) continue;
    const auto same = std::find(distinct.begin(), distinct.end(), told[rank]);
    if (same != distinct.end()) {
      ++more[static_cast<std::size_t>(same - distinct.begin())];
      continue;
    }
    distinct.push_back(told[rank]);
    hosts.emplace_back(places[rank].host);
    more.push_back(0);
  }
  for (std::size_t i = 0; i < distinct.size(); ++i)
    info("power that is allowed on {}{}: {}", hosts[i],
         more[i] == 0 ? "" : fmt::format(" and {} more node{} like it", more[i], more[i] == 1 ? "" : "s"),
         distinct[i]);
}

}  // namespace mindpipe
