#include "energy/gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include "energy/nvml_library.h"

namespace mindpipe {
namespace {

std::string without_blanks(const std::string& text) {
  const std::size_t from = text.find_first_not_of(" \t"), to = text.find_last_not_of(" \t");
  return from == std::string::npos ? "" : text.substr(from, to - from + 1);
}

bool is_instance(const std::string& uuid) { return uuid.starts_with("MIG-"); }

/// The id that one entry of CUDA_VISIBLE_DEVICES names; empty: none.
std::string named_by(const NvmlLibrary& nvml, const std::vector<std::string>& all, const std::string& entry) {
  std::size_t number = 0;
  const char* end = entry.data() + entry.size();
  if (const auto [behind, problem] = std::from_chars(entry.data(), end, number);
      problem == std::errc() && behind == end)
    return number < all.size() ? all[number] : "";
  if (is_instance(entry)) {
    void* instance = nvml.device_of(entry);
    return instance == nullptr ? "" : nvml.uuid_of(instance);
  }
  if (!entry.starts_with("GPU-")) return "";
  std::string found;
  for (const std::string& uuid : all)
    if (uuid.starts_with(entry)) {
      if (!found.empty()) return "";
      found = uuid;
    }
  return found;
}

/// The first instance of a GPU that is divided, which is the one that CUDA shows; else the GPU itself.
std::string shown_of(const NvmlLibrary& nvml, const std::string& uuid) {
  void* device = nvml.device_of(uuid);
  if (device == nullptr || is_instance(uuid) || !nvml.is_divided(device)) return uuid;
  unsigned most = 0;
  if (nvml.instance == nullptr || nvml.most_instances == nullptr || nvml.most_instances(device, &most) != 0)
    return uuid;
  for (unsigned i = 0; i < most; ++i)
    if (void* instance = nullptr; nvml.instance(device, i, &instance) == 0) return nvml.uuid_of(instance);
  return uuid;
}

}  // namespace

std::vector<std::string> visible_gpus(const NvmlLibrary& nvml, const std::optional<std::string>& visible) {
  const std::vector<std::string> all = nvml.all_gpus();
  if (!visible) return all;
  std::vector<std::string> seen;
  std::istringstream entries(*visible);
  for (std::string entry; std::getline(entries, entry, ',');) {
    const std::string uuid = named_by(nvml, all, without_blanks(entry));
    if (uuid.empty() || std::find(seen.begin(), seen.end(), uuid) != seen.end()) break;
    seen.push_back(uuid);
    if (is_instance(uuid)) break;  // CUDA shows one of them
  }
  return seen;
}

NamedGpu named_gpu(const std::string& library, const GpuInUse& gpu) {
  NamedGpu named;
  const std::unique_ptr<NvmlLibrary> nvml = NvmlLibrary::open(library, named.why);
  if (!nvml) return named;
  const std::vector<std::string> seen = visible_gpus(*nvml, gpu.visible);
  if (!seen.empty()) named.uuid = seen[static_cast<std::size_t>(gpu.number) % seen.size()];
  // CUDA may count GPUs in another order than NVML. An instance has its GPU's place.
  if (void* device = nullptr; !gpu.bus_place.empty() && !is_instance(named.uuid) &&
                              nvml->by_bus_place != nullptr &&
                              nvml->by_bus_place(gpu.bus_place.c_str(), &device) == 0)
    named.uuid = nvml->uuid_of(device);
  if (!named.uuid.empty()) named.uuid = shown_of(*nvml, named.uuid);
  else if (gpu.visible)
    named.why = fmt::format("CUDA_VISIBLE_DEVICES is \"{}\", which names no GPU that {} knows", *gpu.visible,
                            library);
  else named.why = fmt::format("{} knows no GPU that this user may reach", library);
  return named;
}

std::vector<std::string> gpu_caps(const std::string& library, const std::vector<UsedGpu>& gpus) {
  std::string why;
  const std::unique_ptr<NvmlLibrary> nvml = NvmlLibrary::open(library, why);
  if (!nvml) return {"GPUs: not known: " + why};
  std::vector<std::string> caps, told;
  for (const UsedGpu& gpu : gpus) {
    void* device = nvml->device_of(gpu.uuid);
    if (void* whole = nullptr;
        is_instance(gpu.uuid) && nvml->whole != nullptr && nvml->whole(device, &whole) == 0)
      device = whole;
    const std::string name = device == nullptr ? gpu.uuid : nvml->word_for(device);
    if (std::find(told.begin(), told.end(), name) != told.end()) continue;
    told.push_back(name);
    unsigned milliwatts = 0;
    const int answer = device == nullptr || nvml->cap == nullptr ? -1 : nvml->cap(device, &milliwatts);
    caps.push_back(answer == 0 ? fmt::format("{}: {:.0f} W", name, milliwatts * 1e-3)
                               : fmt::format("{}: not known: {}", name,
                                             device == nullptr ? "this rank may not reach it"
                                             : answer < 0      ? library + " has no function that says it"
                                                               : fmt::format("NVML answered {}", answer)));
  }
  return caps;
}

}  // namespace mindpipe
