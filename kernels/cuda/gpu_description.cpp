#include "cuda/gpu_description.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <fstream>

#include "cuda/error.h"

namespace mindpipe::cuda {
namespace {

int attribute(cudaDeviceAttr name, int gpu) {
  int value = 0;
  MP_CUDA(cudaDeviceGetAttribute(&value, name, gpu));
  return value;
}

/// A number of the device's place on the bus, as the system tells it in hexadecimal: "0x10de"; 0: it does
/// not.
unsigned number_on_bus(const std::string& place, const char* name) {
  std::ifstream file("/sys/bus/pci/devices/" + place + "/" + name);
  unsigned number = 0;
  file >> std::hex >> number;
  return file ? number : 0;
}

/// The device and, in the lower half, its vendor.
unsigned pci_device(int gpu) {
  char text[32] = {};
  MP_CUDA(cudaDeviceGetPCIBusId(text, sizeof text, gpu));
  std::string place = text;
  std::transform(place.begin(), place.end(), place.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return number_on_bus(place, "device") << 16 | number_on_bus(place, "vendor");
}

}  // namespace

std::string gpu_description(int gpu) {
  struct Member {
    const char* name;
    cudaDeviceAttr attribute;
  };
  constexpr Member members[] = {{"regsPerBlock", cudaDevAttrMaxRegistersPerBlock},
                                {"multiProcessorCount", cudaDevAttrMultiProcessorCount},
                                {"warpSize", cudaDevAttrWarpSize},
                                {"maxSharedMemoryPerBlock", cudaDevAttrMaxSharedMemoryPerBlock},
                                {"maxSharedMemoryPerBlockOptin", cudaDevAttrMaxSharedMemoryPerBlockOptin},
                                {"reservedSharedMemoryPerBlock", cudaDevAttrReservedSharedMemoryPerBlock},
                                {"maxRegistersPerSM", cudaDevAttrMaxRegistersPerMultiprocessor},
                                {"maxCtasPerSM", cudaDevAttrMaxBlocksPerMultiprocessor},
                                {"maxThreadsPerBlock", cudaDevAttrMaxThreadsPerBlock},
                                {"maxThreadsPerSM", cudaDevAttrMaxThreadsPerMultiProcessor},
                                {"isTccDriver", cudaDevAttrTccDriver},
                                {"supportCoopLaunch", cudaDevAttrCooperativeLaunch},
                                {"smClockRateKHz", cudaDevAttrClockRate},
                                {"memClockRateKHz", cudaDevAttrMemoryClockRate},
                                {"l2CacheSize", cudaDevAttrL2CacheSize}};
  const auto of = [&](cudaDeviceAttr name) { return attribute(name, gpu); };
  cudaDeviceProp properties;
  int driver = 0;
  MP_CUDA(cudaGetDeviceProperties(&properties, gpu));
  MP_CUDA(cudaDriverGetVersion(&driver));
  std::string text =
      fmt::format(R"({{"maxGridSize": [{}, {}, {}], "maxBlockSize": [{}, {}, {}])",
                  of(cudaDevAttrMaxGridDimX), of(cudaDevAttrMaxGridDimY), of(cudaDevAttrMaxGridDimZ),
                  of(cudaDevAttrMaxBlockDimX), of(cudaDevAttrMaxBlockDimY), of(cudaDevAttrMaxBlockDimZ));
  for (const Member& member : members)
    text += fmt::format(R"(, "{}": {})", member.name, of(member.attribute));
  text +=
      fmt::format(R"(, "pciDeviceId": {}, "totalGlobalMem": {}, "cudaDeviceId": {}, "deviceVer": {})",
                  pci_device(gpu), properties.totalGlobalMem, gpu,
                  100 * of(cudaDevAttrComputeCapabilityMajor) + 10 * of(cudaDevAttrComputeCapabilityMinor));
  return text + fmt::format(R"(, "driverVer": {}, "deviceName": "{}"}})", driver, properties.name);
}

}  // namespace mindpipe::cuda
