#include "energy/nvml_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace mindpipe {
namespace {

template <class Function>
void find(void* library, Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(library, name));
}

}  // namespace

std::unique_ptr<NvmlLibrary> NvmlLibrary::open(const std::string& path, std::string& why) {
  auto nvml = std::make_unique<NvmlLibrary>();
  nvml->opened_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (nvml->opened_ == nullptr) {
    why = fmt::format("{} cannot be opened; NVIDIA's driver brings it", path);
    return nullptr;
  }
  nvml->find_all();
  if (nvml->initialize == nullptr || nvml->by_index == nullptr || nvml->by_uuid == nullptr ||
      nvml->uuid == nullptr || nvml->count == nullptr ||
      (nvml->energy == nullptr && nvml->power == nullptr)) {
    why = fmt::format("{} lacks the functions that meter energy; a newer driver has them", path);
    return nullptr;
  }
  if (const int answer = nvml->initialize(); answer != 0) {
    why = fmt::format("{}: nvmlInit answered {}; the driver is not ready, or this user may not use it", path,
                      answer);
    return nullptr;
  }
  nvml->begun_ = true;
  return nvml;
}

void NvmlLibrary::find_all() {
  find(opened_, initialize, "nvmlInit_v2");
  find(opened_, end, "nvmlShutdown");
  find(opened_, count, "nvmlDeviceGetCount_v2");
  find(opened_, by_index, "nvmlDeviceGetHandleByIndex_v2");
  find(opened_, by_uuid, "nvmlDeviceGetHandleByUUID");
  find(opened_, by_bus_place, "nvmlDeviceGetHandleByPciBusId_v2");
  find(opened_, uuid, "nvmlDeviceGetUUID");
  find(opened_, index, "nvmlDeviceGetIndex");
  find(opened_, energy, "nvmlDeviceGetTotalEnergyConsumption");
  find(opened_, power, "nvmlDeviceGetPowerUsage");
  find(opened_, cap, "nvmlDeviceGetEnforcedPowerLimit");
  find(opened_, processes, "nvmlDeviceGetComputeRunningProcesses_v3");
  if (processes == nullptr) find(opened_, processes, "nvmlDeviceGetComputeRunningProcesses_v2");
  find(opened_, clients, "nvmlDeviceGetMPSComputeRunningProcesses_v3");
  find(opened_, mode, "nvmlDeviceGetMigMode");
  find(opened_, most_instances, "nvmlDeviceGetMaxMigDeviceCount");
  find(opened_, instance, "nvmlDeviceGetMigDeviceHandleByIndex");
  find(opened_, whole, "nvmlDeviceGetDeviceHandleFromMigDeviceHandle");
  find(opened_, attributes, "nvmlDeviceGetAttributes_v2");
}

NvmlLibrary::~NvmlLibrary() {
  if (begun_ && end != nullptr) end();
  if (opened_ != nullptr) dlclose(opened_);
}

std::string NvmlLibrary::uuid_of(void* device) const {
  char text[96] = "";
  return uuid(device, text, sizeof text) == 0 ? text : "";
}

void* NvmlLibrary::device_of(const std::string& id) const {
  void* device = nullptr;
  return by_uuid(id.c_str(), &device) == 0 ? device : nullptr;
}

std::vector<std::string> NvmlLibrary::all_gpus() const {
  unsigned devices = 0;
  std::vector<std::string> all;
  if (count(&devices) != 0) return all;
  for (unsigned i = 0; i < devices; ++i) {
    void* device = nullptr;
    if (by_index(i, &device) == 0) all.push_back(uuid_of(device));
  }
  return all;
}

bool NvmlLibrary::is_divided(void* device) const {
  unsigned now = 0, later = 0;
  return mode != nullptr && mode(device, &now, &later) == 0 && now != 0;
}

std::string NvmlLibrary::word_for(void* device) const {
  unsigned number = 0;
  return index != nullptr && index(device, &number) == 0 ? fmt::format("GPU {}", number) : uuid_of(device);
}

}  // namespace mindpipe
