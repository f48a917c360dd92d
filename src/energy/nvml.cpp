#include "energy/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <sstream>

#include "core/clock.h"
#include "core/text.h"

namespace mindpipe {

/// The functions of NVML that are called; each answers 0 where all went well.
struct Nvml::Library {
  void* opened = nullptr;
  int (*initialize)() = nullptr;
  int (*end)() = nullptr;
  int (*by_index)(unsigned index, void** device) = nullptr;
  int (*by_uuid)(const char* uuid, void** device) = nullptr;
  int (*energy)(void* device, unsigned long long* millijoules) = nullptr;
  int (*power)(void* device, unsigned* milliwatts) = nullptr;
  int (*cap)(void* device, unsigned* milliwatts) = nullptr;
  bool begun = false;

  template <class Function>
  void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(opened, name));
  }
  ~Library() {
    if (begun && end != nullptr) end();
    if (opened != nullptr) dlclose(opened);
  }
};

namespace {

/// Numbers or ids of the wanted GPUs.
std::vector<std::string> names_of(const Nvml::Wanted& wanted) {
  std::vector<std::string> names;
  std::istringstream visible(wanted.visible);
  for (std::string name; std::ssize(names) < wanted.count && std::getline(visible, name, ',');)
    names.push_back(name);
  for (int gpu = 0; wanted.visible.empty() && gpu < wanted.count; ++gpu) names.push_back(std::to_string(gpu));
  return names;
}

}  // namespace

Nvml::~Nvml() = default;

std::unique_ptr<Nvml> Nvml::open(const std::string& library, const Wanted& wanted, std::string& why) {
  auto meter = std::unique_ptr<Nvml>(new Nvml);
  meter->library_ = std::make_unique<Library>();
  Library& nvml = *meter->library_;
  nvml.opened = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (nvml.opened == nullptr) {
    why = fmt::format("{} cannot be opened; NVIDIA's driver brings it", library);
    return nullptr;
  }
  nvml.find(nvml.initialize, "nvmlInit_v2");
  nvml.find(nvml.end, "nvmlShutdown");
  nvml.find(nvml.by_index, "nvmlDeviceGetHandleByIndex_v2");
  nvml.find(nvml.by_uuid, "nvmlDeviceGetHandleByUUID");
  nvml.find(nvml.energy, "nvmlDeviceGetTotalEnergyConsumption");
  nvml.find(nvml.power, "nvmlDeviceGetPowerUsage");
  nvml.find(nvml.cap, "nvmlDeviceGetEnforcedPowerLimit");
  if (nvml.initialize == nullptr || nvml.by_index == nullptr ||
      (nvml.energy == nullptr && nvml.power == nullptr)) {
    why = fmt::format("{} lacks the functions that meter energy; a newer driver has them", library);
    return nullptr;
  }
  if (const int answer = nvml.initialize(); answer != 0) {
    why = fmt::format("{}: nvmlInit answered {}; the driver is not ready, or this user may not use it",
                      library, answer);
    return nullptr;
  }
  nvml.begun = true;
  for (const std::string& name : names_of(wanted)) {
    const bool is_number = !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
    void* handle = nullptr;
    const int answer = is_number ? nvml.by_index(static_cast<unsigned>(std::stoul(name)), &handle)
                       : nvml.by_uuid != nullptr ? nvml.by_uuid(name.c_str(), &handle)
                                                 : -1;
    if (answer == 0 && meter->add(handle, "GPU " + name)) continue;
    why = fmt::format("{}: GPU {} has no meter that this user may read", library, name);
    return nullptr;
  }
  if (!meter->gpus_.empty()) return meter;
  why = fmt::format("{} knows no GPU of this job", library);
  return nullptr;
}

bool Nvml::add(void* handle, const std::string& name) {
  Gpu gpu{handle, name};
  gpu.counts = library_->energy != nullptr && library_->energy(handle, &gpu.first) == 0;
  unsigned milliwatts = 0;
  if (!gpu.counts && (library_->power == nullptr || library_->power(handle, &milliwatts) != 0)) return false;
  gpu.watts = milliwatts * 1e-3;
  gpu.last_ns = now_ns();
  gpus_.push_back(gpu);
  return true;
}

void Nvml::read(Gpu& gpu) {
  unsigned long long millijoules = 0;
  unsigned milliwatts = 0;
  const int answer =
      gpu.counts ? library_->energy(gpu.handle, &millijoules) : library_->power(gpu.handle, &milliwatts);
  if (answer != 0 || (gpu.counts && millijoules < gpu.first)) {
    gpu.gone = true;
    troubles_.push_back(
        fmt::format("{} no longer tells its energy; what it used from then on is missing", gpu.name));
    return;
  }
  const std::int64_t now = now_ns();
  if (gpu.counts) {
    gpu.joules = static_cast<double>(millijoules - gpu.first) * 1e-3;
  } else {
    const double watts = milliwatts * 1e-3;
    gpu.joules += (watts + gpu.watts) / 2 * static_cast<double>(now - gpu.last_ns) * 1e-9;
    gpu.watts = watts;
  }
  gpu.last_ns = now;
}

double Nvml::joules() {
  double joules = 0;
  for (Gpu& gpu : gpus_) {
    if (!gpu.gone) read(gpu);
    joules += gpu.joules;
  }
  return joules;
}

std::string Nvml::describe() const {
  std::vector<std::string> names;
  for (const Gpu& gpu : gpus_) names.push_back(gpu.counts ? gpu.name : gpu.name + " (its power, integrated)");
  return join(names, ", ");
}

std::vector<std::string> Nvml::caps() const {
  std::vector<std::string> caps;
  unsigned milliwatts = 0;
  for (const Gpu& gpu : gpus_)
    if (library_->cap != nullptr && library_->cap(gpu.handle, &milliwatts) == 0)
      caps.push_back(fmt::format("{}: {:.0f} W", gpu.name, milliwatts * 1e-3));
  return caps;
}

}  // namespace mindpipe
