#pragma once
#include <optional>
#include <string>
#include <vector>

namespace mindpipe {

struct NvmlLibrary;

/// How CUDA names the GPU that a rank computes on.
struct GpuInUse {
  int number = -1;  ///< among those that the rank may see, from 0 again behind the last one;
                    ///< -1: the rank computes on none
  std::optional<std::string> visible;  ///< CUDA_VISIBLE_DEVICES, where it is set
  std::string bus_place;               ///< the place as CUDA says it; empty: not known
};

/// The GPU of a rank, or its instance of one, by the id that all processes of a machine know it by.
struct NamedGpu {
  std::string uuid;
  std::string why;  ///< why there is none
};

/// Ids of what CUDA lets a process see, in CUDA's order: `visible` has numbers, ids and beginnings of ids,
/// and what stands behind the first one that names nothing does not count.
std::vector<std::string> visible_gpus(const NvmlLibrary& nvml, const std::optional<std::string>& visible);

/// Asks the library which GPU that is.
NamedGpu named_gpu(const std::string& library, const GpuInUse& gpu);

/// A GPU that ranks of a job compute on.
struct UsedGpu {
  std::string uuid;
  int ranks = 1;       ///< ranks of this job there
  int first_rank = 0;  ///< the lowest one
};

/// The power that each GPU may draw, as the system has it now: "GPU 0: 700 W", or why that is not known.
std::vector<std::string> gpu_caps(const std::string& library, const std::vector<UsedGpu>& gpus);

}  // namespace mindpipe
