#include "plan/device_on_paper.h"

#include "config/config.h"
#include "config/device_file.h"
#include "plans/attention_planner.h"
#include "plans/reserved_processors.h"

namespace mindpipe {

std::string device_on_paper(const Config& config) {
  return is_device_file(config.device.description) ? read_device_file(config.device.description).like
                                                   : device_name(config);
}

std::string device_name(const Config& config) {
  const std::string& chosen = config.device.description;
  return chosen.empty() ? std::string(row_of(config.device.kind).on_paper) : chosen;
}

namespace {

DeviceDescription whole_device(const Config& config) {
  if (!is_device_file(config.device.description)) return describe_device(device_name(config));
  const DeviceFile file = read_device_file(config.device.description);
  DeviceDescription device = describe_device(file.like);
  const auto take = [](auto said, auto& known, auto unsaid) {
    if (said != unsaid) known = said;
  };
  device.name = config.device.description;
  take(file.flops_f32, device.flops_f32, 0);
  take(file.flops_bf16, device.flops_bf16, 0);
  take(file.bytes, device.bytes, 0);
  take(file.launch, device.launch, -1);
  take(file.half_rate, device.half_rate, -1);
  take(file.attention_scores, device.attention_scores, -1);
  take(file.ranks_per_node, device.links.ranks_per_node, 0);
  take(file.latency, device.links.latency, -1);
  take(file.rate, device.links.bytes, 0);
  take(file.latency_between_nodes, device.links.latency_between_nodes, -1);
  take(file.rate_between_nodes, device.links.bytes_between_nodes, 0);
  take(file.copies, device.links.copies, 0);
  return device;
}

}  // namespace

DeviceDescription description_of(const Config& config) {
  DeviceDescription device = whole_device(config);
  const int reserved = config.device.reserved_multiprocessors;
  const GpuDescription* gpu = reserved > 0 ? find_gpu(device_on_paper(config)) : nullptr;
  if (gpu == nullptr) return device;
  const double share =
      static_cast<double>(processors_left(gpu->multiprocessors, reserved)) / gpu->multiprocessors;
  device.flops_f32 *= share;
  device.flops_bf16 *= share;
  return device;
}

}  // namespace mindpipe
