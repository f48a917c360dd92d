#include "energy/nvml.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/clock.h"
#include "core/text.h"

namespace mindpipe {
namespace {

constexpr int more_than_room = 7;  ///< NVML's answer where a list is longer than the place for it

/// How long a list of processes is; -1 where that is not told.
int length_of(int (*list)(void*, unsigned*, void*), void* device) {
  unsigned count = 0;
  const int answer = list == nullptr ? -1 : list(device, &count, nullptr);
  return answer == 0 || answer == more_than_room ? static_cast<int>(count) : -1;
}

/// The part of its GPU that an instance has, by slices; where these are not told, as if all were as small as
/// they may be.
double part_of_gpu(const NvmlLibrary& nvml, void* gpu, void* instance) {
  constexpr double usual_slices = 7;
  NvmlLibrary::Attributes said;
  unsigned most = 0;
  const bool knows_all = nvml.most_instances != nullptr && nvml.most_instances(gpu, &most) == 0 && most > 0,
             knows_own =
                 nvml.attributes != nullptr && nvml.attributes(instance, &said) == 0 && said.slices > 0;
  return std::min(1.0, (knows_own ? said.slices : 1) / (knows_all ? most : usual_slices));
}

}  // namespace

std::unique_ptr<Nvml> Nvml::open(const std::string& library, const std::vector<UsedGpu>& gpus,
                                 std::string& why) {
  auto meter = std::unique_ptr<Nvml>(new Nvml);
  meter->library_ = NvmlLibrary::open(library, why);
  if (!meter->library_) return nullptr;
  for (const UsedGpu& gpu : gpus) {
    if (meter->add(gpu)) continue;
    why = fmt::format(
        "{}: the rank that reads for this node may not read the meter of {}, on which rank {} computes (its "
        "job step may fence each rank's GPU off from the others: srun --gpu-bind=none)",
        library, gpu.uuid, gpu.first_rank);
    return nullptr;
  }
  if (!meter->gpus_.empty()) return meter;
  why = "no rank of this node computes on a GPU";
  return nullptr;
}

bool Nvml::add(const UsedGpu& used) {
  Gpu gpu;
  gpu.used = gpu.counted = library_->device_of(used.uuid);
  gpu.ranks = used.ranks;
  if (gpu.used == nullptr) return false;
  if (used.uuid.starts_with("MIG-")) {
    if (library_->whole == nullptr || library_->whole(gpu.used, &gpu.counted) != 0) return false;
    gpu.slices = part_of_gpu(*library_, gpu.counted, gpu.used);
    gpu.divided = true;
  }
  gpu.name = library_->word_for(gpu.counted);
  if (gpu.slices < 1) gpu.name = fmt::format("{:.0f} % of {} (MIG, estimated)", 100 * gpu.slices, gpu.name);
  gpu.counts = library_->energy != nullptr && library_->energy(gpu.counted, &gpu.last) == 0;
  unsigned milliwatts = 0;
  if (!gpu.counts && (library_->power == nullptr || library_->power(gpu.counted, &milliwatts) != 0))
    return false;
  gpu.watts = milliwatts * 1e-3;
  gpu.last_ns = now_ns();
  gpu.share = share_of(gpu);
  gpus_.push_back(gpu);
  return true;
}

/// The job's part among the processes that compute there: its ranks have one each.
double Nvml::share_of(Gpu& gpu) {
  const int computing = length_of(library_->processes, gpu.used);
  if (computing < 0) {
    const std::string sentence =
        fmt::format("who computes on {} is not told by NVML: it is taken for the job's own", gpu.name);
    if (std::find(troubles_.begin(), troubles_.end(), sentence) == troubles_.end())
      troubles_.push_back(sentence);
    return 1;
  }
  const int all = computing + std::max(0, length_of(library_->clients, gpu.used));
  if (all <= gpu.ranks) return 1;
  if (!gpu.told)
    troubles_.push_back(fmt::format(
        "{} is shared: {} processes compute there, {} of them this job's; what it takes is divided "
        "equally among them, which is an estimate",
        gpu.name, all, gpu.ranks));
  gpu.told = gpu.divided = true;
  return static_cast<double>(gpu.ranks) / all;
}

void Nvml::read(Gpu& gpu) {
  unsigned long long millijoules = 0;
  unsigned milliwatts = 0;
  const int answer =
      gpu.counts ? library_->energy(gpu.counted, &millijoules) : library_->power(gpu.counted, &milliwatts);
  if (answer != 0 || (gpu.counts && millijoules < gpu.last)) {
    gpu.gone = true;
    troubles_.push_back(
        fmt::format("{} no longer tells its energy; what it used from then on is missing", gpu.name));
    return;
  }
  const std::int64_t now = now_ns();
  // Whoever came or went in between had the smaller part: what several jobs claim is never more than all.
  const double share = share_of(gpu), part = gpu.slices * std::min(share, gpu.share);
  gpu.share = share;
  if (gpu.counts) {
    gpu.joules += part * static_cast<double>(millijoules - gpu.last) * 1e-3;
    gpu.last = millijoules;
  } else {
    const double watts = milliwatts * 1e-3;
    gpu.joules += part * (watts + gpu.watts) / 2 * static_cast<double>(now - gpu.last_ns) * 1e-9;
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

bool Nvml::is_divided() const {
  return std::any_of(gpus_.begin(), gpus_.end(), [](const Gpu& gpu) { return gpu.divided; });
}

std::string Nvml::describe() const {
  std::vector<std::string> names;
  for (const Gpu& gpu : gpus_) names.push_back(gpu.counts ? gpu.name : gpu.name + " (its power, integrated)");
  return join(names, ", ");
}

}  // namespace mindpipe
